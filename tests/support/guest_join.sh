#!/bin/busybox sh
# shellcheck shell=dash
# Link up, and ask for addresses: as at boot, with no memory of earlier ones.
# Its argument: after how many seconds without an answer to ask by IPv4 again; 1 unless told.
stop() {
    # A client that has just got its lease ends with what it runs for that: it would tell of an earlier lease.
    read -r clients </run/clients
    # shellcheck disable=SC2086 # a list of words
    while kill $clients || pidof udhcpc dhclient lease; do usleep 10000; done >/dev/null
    ip address flush dev eth0
    ip link set eth0 down
    rm -f /run/lease? /run/dns? /run/dhcp6.leases
} 2>/dev/null

ask6() {
    # As NetworkManager does: not before a router has said that it is there. And not from an address that is not ready.
    looks=0
    until grep -q '^[23]\|^fd' /proc/net/ipv6_route && grep -q ' 20 80 *eth0$' /proc/net/if_inet6; do
        # For ever, where there is no router: five looks a second are a twentieth of a processor.
        if [ $((looks += 1)) -lt 25 ]; then usleep 200000; else sleep 2; fi
    done
    : >/run/dhcp6.leases
    # RHCOS identifies itself by DUID-LL too: 00:03:00:01 and the MAC address.
    exec dhclient -6 -d -D LL -lf /run/dhcp6.leases -pf /run/dhcp6.pid -sf /bin/lease eth0
}

stop
cut -d' ' -f1 /proc/uptime >/run/asked
ip link set eth0 up
udhcpc -f -t 5 -T "${1:-1}" -A 1 -i eth0 -p /run/dhcp4.pid -s /bin/lease -O ntpsrv -O staticroutes -O mtu -O search \
    >/run/dhcp4.log 2>&1 </dev/null &
clients=$!
ask6 >/run/dhcp6.log 2>&1 </dev/null &
echo "$clients $!" >/run/clients
