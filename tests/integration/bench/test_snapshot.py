"""A snapshot tells what has changed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import lab_host as lab_hosts
from support import lab_trees, snapshot

if TYPE_CHECKING:
    from support.lab_host import LabHost


# What to do, what a snapshot says of it, and how to undo it.
CHANGES = [
    ("echo text > /etc/new", "  + /etc/new: -rw-r--r-- root:root ", "rm /etc/new"),
    ("chmod 600 /etc/hosts", "  ~ /etc/hosts: -rw-r--r--", "chmod 644 /etc/hosts"),
    (
        "echo >> /etc/libvirt/libvirtd.conf",
        "  + /etc/libvirt/libvirtd.conf: ",
        "sed -i '$d' /etc/libvirt/libvirtd.conf",
    ),
    ("ln -s /x /etc/link", "  + /etc/link: lrwxrwxrwx root:root -> /x", "rm /etc/link"),
    ("ip link add br9 type bridge", "  + br9: bridge mtu 1500 down", "ip link delete br9"),
    (
        "ip address add 10.1.1.1/24 dev host0",
        "  + host0 10.1.1.1/24: global",
        "ip address del 10.1.1.1/24 dev host0",
    ),
    ("ip route add 10.2.0.0/24 dev host0", "  + 10.2.0.0/24 dev host0", "ip route del 10.2.0.0/24"),
    ("nft add table ip mine", "  + table ip mine", "nft delete table ip mine"),
    (
        "iptables-legacy -P FORWARD DROP",
        "  + legacy iptables filter FORWARD: DROP",
        "iptables-legacy -P FORWARD ACCEPT",
    ),
    (
        "ip6tables-legacy -t mangle -A INPUT -p udp -j DROP",
        "legacy ip6tables mangle INPUT: ACCEPT\n      -p udp -j DROP",
        "ip6tables-legacy -t mangle -F",
    ),
    (
        "sysctl -qw net.ipv4.conf.default.arp_ignore=1",
        "  ~ net.ipv4.conf.default.arp_ignore: 0  =>  1",
        "sysctl -qw net.ipv4.conf.default.arp_ignore=0",
    ),
    (
        "mkdir -p /run/nometal; install -m 600 /dev/null /run/nometal/mine",
        "  + /run/nometal/mine: -rw------- root:root",
        "rm -r /run/nometal",
    ),
    ("chown nobody /etc/hostname", " nobody:root ", "chown root /etc/hostname"),
    ("echo nameserver 10.9.9.9 > /etc/resolv.conf", "      +nameserver 10.9.9.9", ": > /etc/resolv.conf"),
    ("sysctl -qw net.ipv4.ip_forward=1", "  ~ net.ipv4.ip_forward: 0  =>  1", "sysctl -qw net.ipv4.ip_forward=0"),
    ("mkdir /mnt/m; mount -t tmpfs tmpfs /mnt/m", "  + /mnt/m: tmpfs", "umount /mnt/m; rmdir /mnt/m"),
    ("useradd --uid 2000 mia", "  + user mia: /home/mia", "userdel mia; rm -f /etc/*-"),
    ("usermod -aG libvirt nobody", "  + nobody in group libvirt", "gpasswd -d nobody libvirt"),
    ("setsid sleep 4715 >/dev/null 2>&1 &", "  + sleep: 1", "pkill -f '[s]leep 4715'"),
    ("systemctl -q disable libvirt-guests", "libvirt-guests.service: enabled, ", "systemctl -q enable libvirt-guests"),
    (
        "mkdir -p /var/cache/nometal/left && touch /var/cache/nometal/left/there",
        "  + /var/cache/nometal/left/there: ",
        "rm -r /var/cache/nometal/left",
    ),
    (
        "touch /var/log/libvirt/qemu/left.log",
        "  + /var/log/libvirt/qemu/left.log: ",
        "rm /var/log/libvirt/qemu/left.log",
    ),
    (
        "mkdir -p /run/libvirt/network && touch /run/libvirt/network/left.pid",
        "  + /run/libvirt/network/left.pid: ",
        "rm /run/libvirt/network/left.pid",
    ),
    (
        "virsh -q pool-define-as mine dir --target /srv",
        "  + pool mine: State: inactive",
        "virsh -q pool-undefine mine",
    ),
]


def test_changes_are_told_until_they_are_undone(lab_host: LabHost) -> None:
    before = snapshot.take(lab_host)
    for do, _told, _undo in CHANGES:
        lab_host.run(do)
    text = snapshot.take(lab_host).diff(before)
    assert [told for _do, told, _undo in CHANGES if told not in text] == []
    for _do, _told, undo in CHANGES:
        lab_host.run(undo)
    assert snapshot.take(lab_host).diff(before, without=["files /etc/*-", "files /etc/sub*"]) == ""


def test_fresh_hosts_are_equal_and_so_is_one_after_a_reboot() -> None:
    with lab_hosts.start() as one, lab_hosts.start() as other:
        first = snapshot.take(one)
        assert snapshot.take(other).diff(first) == ""
        one.reboot()
        assert snapshot.take(one).diff(first) == ""


def test_packages_can_be_left_aside_with_what_they_bring() -> None:
    with lab_hosts.start(layer="bare", mirror=True) as bare:
        before = snapshot.take(bare)
        names = " ".join(lab_trees.packages("bookworm", "prepared"))
        bare.run(f"DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends {names}", timeout=300)
        after = snapshot.take(bare)
    assert "  + libvirt-daemon-system: " in after.diff(before)
    assert after.diff(before, without=(*snapshot.WITH_PACKAGES, *snapshot.MADE_BY_PACKAGES)) == ""
