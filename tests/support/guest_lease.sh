#!/bin/busybox sh
# shellcheck shell=dash disable=SC2154 # variables of the clients
# What the DHCP clients run: udhcpc (IPv4) says in $1 what happened, dhclient (IPv6) in $reason; the rest is in variables.
use4() {
    ip address replace "$ip/$mask" dev eth0
    # RFC 3442: where there are classless routes, nobody looks at the router option.
    [ -n "$staticroutes" ] || for gateway in $router; do staticroutes="0.0.0.0/0 $gateway"; done
    # shellcheck disable=SC2086 # a list of words
    set -- $staticroutes
    while [ $# -gt 1 ]; do
        ip route replace "$1" via "$2" dev eth0
        shift 2
    done
    keep 4 "$dns"
}

use6() {
    [ "$old_ip6_address" = "$new_ip6_address" ] || drop6
    # What is on link, and the router, is told by router advertisements.
    ip address replace "$new_ip6_address/128" dev eth0
    keep 6 "$new_dhcp6_name_servers"
}

drop6() {
    [ -z "$old_ip6_address" ] || ip address delete "$old_ip6_address/128" dev eth0
}

# Arguments: the IP version, its name servers. The lease is there once everything else is done.
keep() {
    for server in $2; do echo "nameserver $server"; done >"/run/dns$1"
    cat /run/dns? >/etc/resolv.conf
    read -r now _ </proc/uptime
    { env; echo "asked=$(cat /run/asked)"; echo "now=$now"; } >"/run/new-lease$1"
    mv "/run/new-lease$1" "/run/lease$1"
}

case ${1:-$reason} in
bound | renew) use4 ;;
deconfig) ip -4 address flush dev eth0 ;;
BOUND6 | RENEW6 | REBIND6) use6 ;;
DEPREF6 | EXPIRE6 | STOP6) drop6 ;;
esac
