#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The stock programs of libibverbs on the card: ibv_devices, ibv_devinfo -v, and
# ibv_rc_pingpong between two processes, polling and sleeping on events. Runs in
# the guest with the driver loaded and an address on the card's interface. TAP.

port=18515
limit=600
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

number=0
failures=0

# ok STATUS TEXT [FILE…]: a test point; files are shown when it failed.
ok() {
    status=$1
    text=$2
    shift 2
    number=$((number + 1))
    if [ "$status" = 0 ]; then
        echo "ok $number - $text"
        return
    fi
    failures=$((failures + 1))
    echo "not ok $number - $text"
    for file; do
        sed "s/^/# $(basename "$file"): /" "$file"
    done
}

bail_out() {
    echo "Bail out! $1"
    exit 1
}

# The RDMA device whose PCI function the card's driver runs.
card_device() {
    for entry in /sys/class/infiniband/*; do
        driver=$(readlink "$entry/device/driver") || continue
        if [ "${driver##*/}" = qrdma ]; then
            echo "${entry##*/}"
            return
        fi
    done
}

# Index of the first IPv4 GID: one that the address on the interface made.
ipv4_gid() {
    for entry in "/sys/class/infiniband/$1/ports/1/gids"/*; do
        case $(cat "$entry" 2>/dev/null) in
        0000:0000:0000:0000:0000:ffff:*)
            echo "${entry##*/}"
            return
            ;;
        esac
    done
}

# field NAME: its value in what ibv_devinfo printed.
field() {
    sed -n "s/^[[:space:]]*$1:[[:space:]]*//p" "$folder/devinfo" | head -n 1
}

# is_field NAME PATTERN: a test point for a field; the pattern is the shell's.
is_field() {
    value=$(field "$1")
    # shellcheck disable=SC2254
    case $value in
    $2) ok 0 "ibv_devinfo: $1 is $value" ;;
    *) ok 1 "ibv_devinfo: $1 is '$value', not $2" "$folder/devinfo" ;;
    esac
}

# is_at_least NAME MINIMUM
is_at_least() {
    value=$(field "$1")
    [ "${value:-0}" -ge "$2" ]
    ok $? "ibv_devinfo: $1 is '$value', at least $2" "$folder/devinfo"
}

listens() {
    grep -qi ":$(printf %04X "$port") 0\{8,32\}:0000 0A" /proc/net/tcp /proc/net/tcp6 \
        2>/dev/null
}

# Waits until process $1 listens; fails when it ends instead.
wait_for_server() {
    until listens; do
        kill -0 "$1" 2>/dev/null || return 1
        usleep 20000
    done
}

# moved FILE BYTES ITERATIONS: whether the program reported that traffic.
moved() {
    grep -q "^$2 bytes in " "$1" && grep -q "^$3 iters in " "$1" &&
        ! grep -q "invalid data" "$1"
}

# pingpong SIZE ITERATIONS polling|events: one run of both sides.
pingpong() {
    set -- "$1" "$2" "$3" -d "$device" -g "$gid" -p "$port" -s "$1" -n "$2" -c
    size=$1 iterations=$2 mode=$3
    shift 3
    [ "$mode" = events ] && set -- "$@" -e

    timeout "$limit" ibv_rc_pingpong "$@" >"$folder/server" 2>&1 &
    server=$!
    result=1
    if wait_for_server "$server"; then
        timeout "$limit" ibv_rc_pingpong "$@" 127.0.0.1 >"$folder/client" 2>&1
        result=$?
    else
        echo "no server" >"$folder/client"
    fi
    [ "$result" = 0 ] || kill "$server" 2>/dev/null
    wait "$server" || result=1

    bytes=$((size * iterations * 2))
    moved "$folder/client" "$bytes" "$iterations" &&
        moved "$folder/server" "$bytes" "$iterations" || result=1
    echo "# figures: size=$size iterations=$iterations bytes=$bytes mode=$mode"
    ok "$result" "ibv_rc_pingpong: $iterations times $size bytes, $mode" \
        "$folder/server" "$folder/client"
}

echo "TAP version 13"
device=$(card_device)
[ -n "$device" ] || bail_out "no RDMA device of the qrdma driver"
gid=$(ipv4_gid "$device")
[ -n "$gid" ] || bail_out "$device has no IPv4 GID"

ibv_devices >"$folder/devices" 2>&1 && grep -q "[[:space:]]${device}[[:space:]]" "$folder/devices"
ok $? "ibv_devices: lists $device" "$folder/devices"

ibv_devinfo -v -d "$device" >"$folder/devinfo" 2>&1
ok $? "ibv_devinfo -v: succeeds" "$folder/devinfo"
is_field hca_id "$device"
is_field transport "InfiniBand*"
is_field vendor_id "0x1234"
is_field phys_port_cnt 1
is_field state "PORT_ACTIVE*"
is_field link_layer Ethernet
is_at_least max_qp 4096
is_at_least max_cq 4096
is_at_least max_mr 1000000
grep -q "GID\[ *$gid\]:.*RoCE v2" "$folder/devinfo"
ok $? "ibv_devinfo: GID $gid is for RoCE v2" "$folder/devinfo"

for mode in polling events; do
    for size in 1 64 4096 65536 1048576; do
        for iterations in 1 100 1000; do
            pingpong "$size" "$iterations" "$mode"
        done
    done
done

echo "1..$number"
[ "$failures" = 0 ]
