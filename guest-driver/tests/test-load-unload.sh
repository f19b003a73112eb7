#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The driver comes, works and goes, 20 times in a row, without a warning of the
# kernel's. load_card and unload_card are functions of the guest's.
#
#   test-load-unload [ROUNDS [all | FLOW]]   all: the flows with all their cases,
#                                            not with one each; a minute or two a
#                                            round. FLOW: only that one, whole

. /qrdma/functions

rounds=${1:-20}
failed=0
flows="flow-register:1537-entries flow-page-size:8MiB flow-revoke:idle
       flow-recovery:moved-back"
case $2 in
"") ;;
all) flows="flow-register flow-page-size flow-revoke flow-recovery" ;;
*) flows=$2 ;;
esac

# Prints the name of the flow that fails.
use_card() {
    for flow in $flows; do
        name=${flow%%:*}
        argument=
        [ "$name" = "$flow" ] || argument=${flow#*:}
        "/tests/$name" ${argument:+"$argument"} >/tmp/output || {
            echo "$flow"
            return
        }
    done
}

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
    elif broken=$(use_card); [ -n "$broken" ]; then
        what="$broken fails"
    elif ! unload_card; then
        what="the driver does not unload"
    elif lsmod | grep -q '^qrdma'; then
        what="the driver is still there"
    fi
    if [ -z "$what" ]; then
        echo "ok $round - round $round: loaded, used, unloaded"
    else
        echo "not ok $round - round $round: $what"
        [ ! -f /tmp/output ] || sed 's/^/# /' /tmp/output
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
