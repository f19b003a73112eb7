#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The driver comes, works and goes, 20 times in a row, without a warning of the
# kernel's. Its functions are the guest's own, which packs them.

. /qrdma/functions

rounds=${1:-20}
failed=0

warnings() {
    dmesg | grep -cE 'WARNING|BUG:|Oops|Call Trace|leak|general protection'
}

echo "TAP version 13"
if lsmod | grep -q '^qrdma '; then
    unload_card
fi
before=$(warnings)
round=1
while [ "$round" -le "$rounds" ]; do
    what=
    if ! load_card; then
        what="the driver does not load"
    elif ! /tests/flow-register 1537-entries >/tmp/output; then
        what="regions do not work"
    elif ! /tests/flow-revoke idle >/tmp/output; then
        what="a revocation does not work"
    elif ! unload_card; then
        what="the driver does not unload"
    elif lsmod | grep -q '^qrdma'; then
        what="the driver is still there"
    fi
    if [ -z "$what" ]; then
        echo "ok $round - round $round: loaded, used, unloaded"
    else
        echo "not ok $round - round $round: $what"
        sed 's/^/# /' /tmp/output
        failed=1
        break
    fi
    round=$((round + 1))
done
after=$(warnings)
[ "$round" -gt "$rounds" ] || rounds=$round
echo "# figures: rounds=$rounds kernel_warnings=$((after - before))"
if [ "$after" = "$before" ]; then
    echo "ok $((rounds + 1)) - no warning of the kernel's"
else
    echo "not ok $((rounds + 1)) - the kernel warned $((after - before)) times"
    failed=1
fi
echo "1..$((rounds + 1))"
load_card
exit $failed
