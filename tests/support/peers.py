"""Hosts as administrators have them: what runs beside a lab, as a table of factors with their levels.

Every level is a shell script for a fresh host of the layer `peers`, which has all the packages that they need, with
their services switched off. The first level of a factor is the plain one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from support import stranger
from support.street import ROUTER, ROUTER_V6, house_address, house_address_v6

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.lab_host import LabHost

USER = "ada"
SEED = 452  # its sample has trixie, nftables with a flush, sudo and umask 077; another one older libvirt and iptables
ADDRESS, ADDRESS_V6 = house_address(10), house_address_v6(10)
USES_LOCAL_SERVER = "echo nameserver 127.0.0.1 > /etc/resolv.conf\n"

NFTABLES = """
cat > /etc/nftables.conf <<'END'
#!/usr/sbin/nft -f
flush ruleset
table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		iif lo accept
		meta l4proto { icmp, ipv6-icmp } accept
		tcp dport 22 accept
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
	}
}
END
systemctl enable --quiet --now nftables
"""
# The rules of an administrator who drops by default, by whichever of the two programs.
DROPPING = """
for ip in ip ip6; do
    tables=${ip}tables%s
    $tables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
    $tables -A INPUT -i lo -j ACCEPT
    $tables -A INPUT -p tcp --dport 22 -j ACCEPT
    $tables -P INPUT DROP
    $tables -P FORWARD DROP
done
iptables%s -A INPUT -p icmp -j ACCEPT
ip6tables%s -A INPUT -p ipv6-icmp -j ACCEPT
"""
LEGACY = (
    "for tables in iptables ip6tables; do update-alternatives --quiet --set $tables /usr/sbin/$tables-legacy; done\n"
)
# As its engine installs them, with its bridge.
DOCKER = """
sysctl -qw net.ipv4.ip_forward=1
for call in iptables ip6tables; do echo 1 > /proc/sys/net/bridge/bridge-nf-call-$call; done
ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up
iptables-restore --noflush <<'END'
*filter
:FORWARD DROP
:DOCKER -
:DOCKER-ISOLATION-STAGE-1 -
:DOCKER-ISOLATION-STAGE-2 -
:DOCKER-USER -
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -j RETURN
COMMIT
*nat
:DOCKER -
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
COMMIT
END
ip6tables -P FORWARD DROP
"""
FIREWALL = {
    "no firewall": "",
    "firewalld": "systemctl enable --quiet --now firewalld\n",
    "nftables": NFTABLES,
    "iptables legacy": LEGACY + DROPPING.replace("%s", ""),
    "mixed": DROPPING.replace("%s", "-legacy"),
    "Docker": DOCKER,
}
# These end when they have had nothing to do for a while. What dnsmasq calls for a neighbour's lease ends at once.
OF_THEMSELVES = (
    "processes libvirt_leasesh",
    *("package processes systemd-hostnam", "package services systemd-hostnamed.service"),
    *("package processes nm-dispatcher", "package services NetworkManager-dispatcher.service"),
)
# What happens to a firewall in its life: an administrator loads the rules again.
RELOAD = {"firewalld": "firewall-cmd --quiet --reload", "nftables": "systemctl restart nftables"}

NETWORK_MANAGER = f"""
cat > /etc/NetworkManager/system-connections/host0.nmconnection <<'END'
[connection]
id=host0
uuid=7a1d8c1e-5c39-4e05-8f3d-3d6d1ff4b3a1
type=ethernet
interface-name=host0
[ipv4]
method=manual
address1={ADDRESS}/24,{ROUTER}
dns={ROUTER};
[ipv6]
method=manual
address1={ADDRESS_V6}/64,{ROUTER_V6}
END
chmod 600 /etc/NetworkManager/system-connections/host0.nmconnection
systemctl enable --quiet --now NetworkManager
nm-online --quiet --timeout=120
"""
NETWORKD = f"""
cat > /etc/systemd/network/10-host0.network <<'END'
[Match]
Name=host0
[Network]
Address={ADDRESS}/24
Address={ADDRESS_V6}/64
Gateway={ROUTER}
Gateway={ROUTER_V6}
DNS={ROUTER}
LinkLocalAddressing=no
IPv6AcceptRA=no
END
ip address flush dev host0  # as after a boot: it does not take over what has another flag
systemctl enable --quiet --now systemd-networkd
/usr/lib/systemd/systemd-networkd-wait-online --interface=host0 --timeout=120
"""
LINKS = {"no manager": "", "NetworkManager": NETWORK_MANAGER, "systemd-networkd": NETWORKD}

RESOLVED = f"""
mkdir -p /etc/systemd/resolved.conf.d
printf '[Resolve]\\nDNS={ROUTER}\\nDNSSEC=no\\n' > /etc/systemd/resolved.conf.d/street.conf
systemctl enable --quiet --now systemd-resolved
ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
"""
DNSMASQ = f"""
printf 'no-resolv\\nserver={ROUTER}\\nbind-interfaces\\nlisten-address=127.0.0.1\\n' > /etc/dnsmasq.d/own.conf
systemctl enable --quiet --now dnsmasq
{USES_LOCAL_SERVER}"""
UNBOUND = f"""
cat > /etc/unbound/unbound.conf.d/own.conf <<'END'
server:
  module-config: "iterator"
forward-zone:
  name: "."
  forward-addr: {ROUTER}
END
systemctl enable --quiet --now unbound
{USES_LOCAL_SERVER}"""
NAMES = {
    "resolv.conf": f"echo nameserver {ROUTER} > /etc/resolv.conf\n",
    "systemd-resolved": RESOLVED,
    "dnsmasq": DNSMASQ,
    "unbound": UNBOUND,
}
NEIGHBOUR = {
    "no VM": "",
    "a running VM in the network default": "virsh net-autostart default && virsh net-start default\n",
}
SUDO = f"""
useradd --create-home --shell /bin/bash --password '*' {USER}
echo '{USER} ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/{USER}
"""
LOGIN = {"root": "", "sudo": SUDO}
# Debian's bash reads .bashrc also for the commands of ssh; sudo has a setting of its own.
UMASK = {
    "usual umask": "",
    **{
        f"umask {umask}": f"for home in /root /home/*; do sed -i '1i umask {umask}' $home/.bashrc || :; done\n"
        f"echo 'Defaults umask=0{umask}, umask_override' > /etc/sudoers.d/umask\n"
        for umask in ("000", "027", "077")
    },
}
SUITE = {"bookworm": "", "trixie": ""}


@dataclass(frozen=True)
class HostKind:
    """A level of each factor; by their order a host is set up."""

    suite: str = "bookworm"
    links: str = "no manager"
    names: str = "resolv.conf"
    firewall: str = "no firewall"
    neighbour: str = "no VM"
    login: str = "root"
    umask: str = "usual umask"

    def __str__(self) -> str:
        return ", ".join([self.suite, *(self.special or ["plain"])])

    @property
    def special(self) -> list[str]:
        return [getattr(self, name) for name in FACTORS if name != "suite" and getattr(self, name) != _PLAIN[name]]

    @property
    def variables(self) -> dict[str, object]:
        """For the inventory."""
        return {"ansible_user": USER} if self.login == "sudo" else {}

    @property
    def reload(self) -> str:
        """What an administrator does to the firewall meanwhile, or nothing."""
        return RELOAD.get(self.firewall, "")

    def set_up(self, host: LabHost) -> None:
        for factor, scripts in FACTORS.items():
            host.run(f"set -e\n{scripts[getattr(self, factor)]}", timeout=300)
        if self.neighbour != "no VM":
            stranger.define_vm(host, plugged_into="network='default'")
            host.run("virsh start mine")
            host.run("until ip -br link show virbr0 | grep -q ' UP '; do sleep 0.1; done", timeout=60)
        host.run("systemctl restart libvirtd; systemctl start virtlogd")  # as if it had come with the boot
        forwards = host.read("/proc/sys/net/ipv4/ip_forward")
        stranger.use_libvirt(host, network="default" if self.neighbour == "no VM" else "")
        host.run(f"sysctl -qw net.ipv4.ip_forward={forwards}")
        if self.firewall == "firewalld" and self.neighbour == "no VM":
            # It knows a zone for the bridge that was there for a moment, until its rules are loaded again.
            known = host.run("firewall-cmd --get-zone-of-interface=virbr0", check=False).stdout.strip()
            if known:
                host.run(f"firewall-cmd --quiet --zone={known} --remove-interface=virbr0")


FACTORS = {
    "suite": SUITE,
    "links": LINKS,
    "names": NAMES,
    "firewall": FIREWALL,
    "neighbour": NEIGHBOUR,
    "login": LOGIN,
    "umask": UMASK,
}
_PLAIN = {field.name: str(field.default) for field in fields(HostKind)}


def each_alone() -> Iterator[HostKind]:
    """Of both releases: the plain host, and those that differ from it in one thing."""
    for suite in SUITE:
        plain = HostKind(suite=suite)
        yield plain
        for factor, levels in FACTORS.items():
            if factor != "suite":
                yield from (replace(plain, **{factor: level}) for level in levels if level != _PLAIN[factor])


def sample(kinds: Sequence[HostKind]) -> HostKind:
    """One whose firewall is loaded again; then of a release that few other tests have, and least like a plain host."""
    return max(kinds, key=lambda kind: (bool(kind.reload), kind.suite, len(kind.special)))


def mixtures(seed: int) -> list[HostKind]:
    """As few hosts as have every level of every factor, put together by chance, always the same for a seed."""
    count = max(map(len, FACTORS.values()))
    columns = {}
    for factor, levels in FACTORS.items():
        column = [list(levels)[number % len(levels)] for number in range(count)]
        random.Random(f"{seed} {factor}").shuffle(column)  # noqa: S311 - no secret
        columns[factor] = column
    return [HostKind(**{factor: column[number] for factor, column in columns.items()}) for number in range(count)]
