#!/bin/busybox sh
# shellcheck shell=dash
# The first process of a test guest: joins the network, then runs what the test sends through the channel.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /run /tmp /var
settings=/proc/sys/net/ipv6/conf/default
echo 0 >$settings/dad_transmits # nobody else has its addresses: no second or two for asking whether somebody has
echo 1 >$settings/router_solicitation_interval
echo -1 >$settings/router_solicitations
while read -r module; do insmod "/modules/$module.ko"; done </modules/order
ip link set lo up
join

# A line is a command's time limit and its text in base64; so is the answer: exit code and output.
channel=$(echo /dev/vport*)
exec 3<>"$channel"
while :; do
    # Nobody is connected where the line ends at once.
    read -r limit text <&3 || { usleep 50000; continue; }
    echo "$text" | base64 -d >/tmp/command
    timeout "$limit" sh /tmp/command >/tmp/output 2>&1 </dev/null 3>&-
    echo "$? $(base64 /tmp/output | tr -d '\n')" >&3
done
