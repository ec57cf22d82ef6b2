#!/bin/busybox sh
# Link up, and ask for addresses: as at boot, with no memory of earlier ones. `join stop` undoes it.
stop() {
    kill "$(cat /run/dhcp4.pid)" "$(cat /run/dhcp6.pid)"
    ip address flush dev eth0
    ip link set eth0 down
    rm -f /run/lease? /run/dns? /run/dhcp6.leases
} 2>/dev/null

ask6() {
    # The client gives up where the link-local address is still being probed.
    until ip -6 address show dev eth0 scope link -tentative | grep -q inet6; do usleep 20000; done
    : >/run/dhcp6.leases
    # RHCOS identifies itself by DUID-LL too: 00:03:00:01 and the MAC address.
    exec dhclient -6 -d -D LL -lf /run/dhcp6.leases -pf /run/dhcp6.pid -sf /bin/lease eth0
}

stop
[ "$1" != stop ] || exit 0
cut -d' ' -f1 /proc/uptime >/run/link-up
ip link set eth0 up
udhcpc -f -S -t 5 -T 1 -A 1 -i eth0 -p /run/dhcp4.pid -s /bin/lease -O ntpsrv -O staticroutes -O mtu -O search \
    >/run/dhcp4.log 2>&1 </dev/null &
ask6 >/run/dhcp6.log 2>&1 </dev/null &
