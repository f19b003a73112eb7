# SPDX-License-Identifier: GPL-2.0-or-later
#
# Sourced by scripts/run, test, vm and build: makes sure that what they need is
# installed, then hands over to Python. Uses the system's own python3: one that
# is first on PATH may not see the system's modules.

# qrdma_main MODULE ARGUMENT...: does not return.
qrdma_main() {
    local scripts module=$1
    shift
    scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

    case " $* " in
        *" --help "*|*" -h "*|*" --list "*) ;;    # answer without installing
        *) "$scripts/install" || exit 1 ;;
    esac
    if [ ! -x /usr/bin/python3 ]; then
        "$scripts/install" || exit 1
    fi
    if ! /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "qrdma: python3 3.11 or later is needed (Debian 12 or 13)" >&2
        exit 1
    fi
    # The tools that packages.txt names, whatever else is on PATH.
    export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
    unset PYTHONHOME
    export PYTHONDONTWRITEBYTECODE=1
    PYTHONPATH="$scripts/lib" exec /usr/bin/python3 -m "qrdma.$module" "$@"
}
