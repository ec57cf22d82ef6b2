"""split_dns on hosts that resolve names in each of the three ways, with a name server on the street as the world's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from support import lab_host, snapshot
from support.modules import run_in
from support.street import OUTSIDE, ROUTER
from support.waiting import wait_until
from support.world import a_world

from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import DISPATCHER, DISPATCHER_TEXT

if TYPE_CHECKING:
    from pathlib import Path

    from support.lab_host import LabHost

NETWORK = """
<network xmlns:dnsmasq='http://libvirt.org/schemas/network/dnsmasq/1.0'>
  <name>nometal-{name}</name><forward mode='nat'/><bridge name='nm-{name}'/>
  <domain name='{name}.lab.test' localOnly='yes'/>
  <dns><host ip='{subnet}.5'><hostname>api.{name}.lab.test</hostname></host></dns>
  <ip address='{subnet}.1' prefix='24' localPtr='yes'/>
  <dnsmasq:options><dnsmasq:option value='address=/apps.{name}.lab.test/{subnet}.6'/></dnsmasq:options>
</network>
"""
SUBNETS = {"one": "192.168.126", "two": "192.168.127"}
# No line break at the end: nothing of it may change.
RESOLV_CONF = f"# as it was\nsearch street.test\nnameserver {ROUTER}\noptions timeout:2 attempts:1"
LOOK_UP = "import socket, sys; print(socket.getaddrinfo(sys.argv[1], 80)[0][4][0])"
HOLD_PORT = (
    "import signal, socket; s = socket.socket(type=2); s.setsockopt(1, 2, 1); s.bind((str(), 53)); signal.pause()"
)
IS_HELD = "until ss -Hlnu | grep -qw 0.0.0.0:53; do sleep 0.05; done"
NOTHING = ""
HOOK = "/etc/libvirt/hooks/nometal.d/all_labs.resolver"
# libvirt's rules stand in another order after a restart, and links have other numbers.
OF_THEMSELVES = ["firewall", "resolver resolvectl", "routes", "links"]
NOTED_BY_MANAGER = ["files /var/lib/NetworkManager/*", "package *"]  # and services that it starts for a moment
OUR_SERVER = "ss -Hlntu src 127.78.77.53"


def prepare(host: LabHost) -> None:
    """Two labs' networks, which start at boot, and the hook."""
    host.write(str(DISPATCHER), DISPATCHER_TEXT, mode="0755")
    restart = "systemctl restart libvirtd" if host.facts["init"] == "systemd" else "virtlogd -d; libvirtd -d"
    host.run(restart)
    for name, subnet in SUBNETS.items():
        host.run(["virsh", "net-define", "/dev/stdin"], input=NETWORK.format(name=name, subnet=subnet))
        host.run(f"virsh net-autostart nometal-{name} && virsh net-start nometal-{name}")


@dataclass(frozen=True)
class Lab:
    """One lab's names, on a host."""

    host: LabHost
    name: str
    umask: str = "022"

    def module(self, *, check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
        subnet = SUBNETS[self.name]
        lab = {
            "owner": self.name,
            "link": f"nm-{self.name}",
            "domains": [f"{self.name}.lab.test"],
            "subnets": [f"{subnet}.0/24"],
            "servers": [f"{subnet}.1"],
            "names": [f"api.{self.name}.lab.test"],
        }
        return run_in(self.host, "split_dns", {**lab, **arguments}, check_mode=check_mode, umask=self.umask)

    def network(self, verb: str) -> None:
        self.host.run(f"virsh net-{verb} nometal-{self.name}")

    def is_known(self) -> bool:
        """The names, also those that are there by a wildcard, and the way back."""
        subnet = SUBNETS[self.name]
        wanted = {f"api.{self.name}.lab.test": f"{subnet}.5", f"test.apps.{self.name}.lab.test": f"{subnet}.6"}
        back = self.host.run(f"getent hosts {subnet}.5", check=False).stdout
        return {name: address_of(self.host, name) for name in wanted} == wanted and f"api.{self.name}.lab.test" in back

    def is_made_known(self, means: str) -> None:
        """Check mode, then for good, then nothing more."""
        foreseen = self.module(check_mode=True)
        assert not self.is_known()
        made = self.module()
        assert made["means"] == means, made
        assert made["steps"] == foreseen["steps"] == [f"write {means}", f"apply {means}"]
        assert made["shown_diff"] == foreseen["shown_diff"] != ""
        assert self.is_known()
        for check_mode in (True, False):
            assert self.module(check_mode=check_mode)["steps"] == []

    def is_forgotten(self, means: str) -> None:
        foreseen = self.module(state="absent", check_mode=True)
        assert self.is_known()
        gone = self.module(state="absent")
        assert gone["steps"] == foreseen["steps"] == [f"remove {means}"]
        assert not self.is_known()
        for check_mode in (True, False):
            assert self.module(state="absent", check_mode=check_mode)["steps"] == []


def address_of(host: LabHost, name: str) -> str:
    return host.run(["/usr/bin/python3", "-c", LOOK_UP, name], check=False).stdout.strip() or NOTHING


def labs_on(host: LabHost) -> list[Lab]:
    return [Lab(host, name) for name in SUBNETS]


def soon(host: LabHost, command: str) -> None:
    wait_until(command, lambda: host.run(command, check=False).returncode == 0)


def test_a_plain_resolv_conf(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, lab_host.start(street=world.street) as host:
        host.write("/etc/resolv.conf", RESOLV_CONF)
        prepare(host)
        before = snapshot.take(host)
        one, two = labs_on(host)
        one.is_made_known("resolv.conf")
        refuses_domains_of(one, two)
        two.module()
        with world.not_asked_for_labs():
            assert two.is_known()
            serves_the_host_only(host)
            comes_back_by_itself(one)
            follows_the_networks(one, two)
        is_set_up_anew_where_it_does_not_answer(one, two)

        host.reboot()
        wait_until("both labs are known again", lambda: one.is_known() and two.is_known())
        host.run("rm /etc/libvirt/hooks/nometal.d/all_labs.resolver; kill $(cat /run/nometal-resolver/pid)")
        assert one.module()["steps"] == ["write resolv.conf", "apply resolv.conf"]
        assert not two.module()["changed"]

        two.module(state="absent")
        with world.not_asked_for_labs():
            assert one.is_known()
        one.is_forgotten("resolv.conf")
        assert host.read("/etc/resolv.conf") == RESOLV_CONF
        assert snapshot.take(host).diff(before, without=OF_THEMSELVES) == ""


def refuses_domains_of(one: Lab, two: Lab) -> None:
    said = refused(two.module(domains=["one.lab.test", "two.lab.test"]))
    assert "one.lab.test is lab one's on this host already" in said


def serves_the_host_only(host: LabHost) -> None:
    server = "$(cat /run/nometal-resolver/pid)"
    assert host.run(f"ps -o user= -p {server}").stdout.strip() in ("nobody", "dnsmasq")
    assert address_of(host, "www.outside.test") == OUTSIDE
    assert host.run(f"ss -Hlntup | grep pid={server}, | grep -vF 127.78.77.53:53", check=False).stdout == ""


def comes_back_by_itself(lab: Lab) -> None:
    """After somebody has written resolv.conf anew with another name server, and after the server was killed."""
    host = lab.host
    host.write("/etc/resolv.conf", f"nameserver {OUTSIDE}\n")
    soon(host, "grep -q 127.78.77.53 /etc/resolv.conf")
    assert lab.is_known()
    assert address_of(host, "www.outside.test") == OUTSIDE
    host.write("/etc/resolv.conf", RESOLV_CONF)
    soon(host, "grep -q 127.78.77.53 /etc/resolv.conf")
    server = host.read("/run/nometal-resolver/pid").strip()
    host.run(f"kill -KILL {server}")
    # It may have its port for a moment yet.
    soon(host, f'test ! -e /proc/{server} && test -n "$({OUR_SERVER})"')
    assert lab.is_known()


def is_set_up_anew_where_it_does_not_answer(one: Lab, two: Lab) -> None:
    """Its files say that all is well."""
    for harm in (
        "echo >/run/nometal-resolver/servers; kill -HUP $(cat /run/nometal-resolver/pid)",
        "kill -STOP $(cat /run/nometal-resolver/pid)",
    ):
        one.host.run(harm)
        wait_until("the names are unknown", lambda: not one.is_known())
        assert one.module(check_mode=True)["steps"] == ["apply resolv.conf"]
        assert one.module()["steps"] == ["apply resolv.conf"]
        assert one.is_known()
        assert not two.module()["changed"]


def follows_the_networks(one: Lab, two: Lab) -> None:
    host = one.host
    one.network("destroy")
    assert two.is_known()
    assert address_of(host, "api.one.lab.test") == NOTHING
    two.network("destroy")
    assert host.read("/etc/resolv.conf") == RESOLV_CONF
    assert host.run(OUR_SERVER).stdout == ""
    assert one.module()["steps"] == []
    one.network("start")
    assert one.is_known()
    two.network("start")


def test_without_systemd_and_what_is_refused(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, lab_host.start(street=world.street, init="none") as host:
        host.write("/etc/resolv.conf", RESOLV_CONF)
        prepare(host)
        one, _two = labs_on(host)
        for trouble, cure, said in [
            ("mv /etc/resolv.conf /etc/kept", "mv /etc/kept /etc/resolv.conf", "/etc/resolv.conf is missing"),
            ("echo '\noptions rotate' >> /etc/resolv.conf", "sed -i 5,6d /etc/resolv.conf", "`options rotate`"),
            (
                "mount -o bind,ro /etc/resolv.conf /etc/resolv.conf",
                "umount /etc/resolv.conf",
                "/etc/resolv.conf cannot be written",
            ),
            (
                f"sh -c 'setsid /usr/bin/python3 -c \"{HOLD_PORT}\" >/dev/null 2>&1 & echo $! >/run/theirs; {IS_HELD}'",
                "kill $(cat /run/theirs)",
                "Another name server holds port 53",
            ),
        ]:
            host.run(trouble)
            assert said in refused(one.module())
            host.run(cure)
        host.write("/etc/resolv.conf", RESOLV_CONF)
        one = replace(one, umask="077")
        before = snapshot.take(host)

        one.is_made_known("resolv.conf")
        host.run("kill $(cat /run/nometal-resolver/pid); rm -r /run/nometal-resolver")
        host.run(f"umask 077; {HOOK} nometal-one started")  # as libvirt may call it
        assert one.is_known()
        host.run("rm /var/lib/nometal/resolver/one.lab")  # as if its removal had been cut short
        assert one.module(state="absent")["steps"] == ["remove resolv.conf"]
        assert snapshot.take(host).diff(before, without=OF_THEMSELVES) == ""

        # As in containers: it can be written, but nothing can take its place.
        host.run("mount --bind /etc/resolv.conf /etc/resolv.conf")
        one.module()
        one.network("destroy")
        assert host.read("/etc/resolv.conf") == RESOLV_CONF
        one.network("start")
        one.is_forgotten("resolv.conf")
        host.run("umount /etc/resolv.conf")
        assert snapshot.take(host).diff(before, without=OF_THEMSELVES) == ""


def refused(result: dict[str, Any]) -> str:
    assert result["failed"], result
    return result["msg"]


@pytest.mark.full
def test_systemd_resolved(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, lab_host.start(street=world.street, mirror=True) as host:
        host.write("/etc/systemd/resolved.conf.d/street.conf", f"[Resolve]\nDNS={ROUTER}\nDNSSEC=no\nDNSOverTLS=no\n")
        host.run("apt-get -qy update && apt-get -qy install systemd-resolved")
        host.run("systemctl restart systemd-resolved")  # Debian starts it before it may be on the bus
        prepare(host)
        before = snapshot.take(host)
        one, two = labs_on(host)
        give_carrier(one)
        give_carrier(two)

        one.is_made_known("systemd-resolved")
        refuses_domains_of(one, two)
        two.module()
        with world.not_asked_for_labs():
            assert two.is_known()
            assert "192.168.126.6" in host.run("resolvectl query test.apps.one.lab.test").stdout
            assert address_of(host, "www.outside.test") == OUTSIDE
            one.network("destroy")
            assert two.is_known()
            assert one.module()["steps"] == []
            one.network("start")
            host.run("ip link del end-one")
            give_carrier(one)
            wait_until("lab one is known again", one.is_known)
        host.run("resolvectl revert nm-one")
        assert one.module()["steps"] == ["apply systemd-resolved"]

        host.reboot()
        give_carrier(one)
        give_carrier(two)
        wait_until("both labs are known again", lambda: one.is_known() and two.is_known())
        one.is_forgotten("systemd-resolved")
        assert two.is_known()
        two.module(state="absent")
        assert "192.168" not in host.run("resolvectl status").stdout
        host.run("ip link del end-one; ip link del end-two")
        assert snapshot.take(host).diff(before, without=OF_THEMSELVES) == ""


def give_carrier(lab: Lab) -> None:
    """As a lab's veth pair does. systemd-resolved asks nobody on a link without it."""
    bridge, end = f"nm-{lab.name}", f"end-{lab.name}"
    soon(lab.host, f"test -e /sys/class/net/{bridge}")  # libvirt starts its networks a moment after a boot
    lab.host.run(
        f"ip link add {end} type veth peer name other-{lab.name}; ip link set other-{lab.name} up;"
        f"ip link set {end} master {bridge} up"
    )
    soon(lab.host, f"grep -q up /sys/class/net/{bridge}/operstate")


@pytest.mark.full
def test_the_dnsmasq_of_network_manager(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, lab_host.start(street=world.street, mirror=True) as host:
        host.write(
            "/etc/NetworkManager/conf.d/street.conf", f"[main]\ndns=dnsmasq\n[global-dns-domain-*]\nservers={ROUTER}\n"
        )
        host.run("apt-get -qy update && apt-get -qy install network-manager")
        prepare(host)
        before = snapshot.take(host)
        one, two = labs_on(host)

        one.is_made_known("NetworkManager")
        refuses_domains_of(one, two)
        two.module()
        with world.not_asked_for_labs():
            assert two.is_known()
            assert address_of(host, "www.outside.test") == OUTSIDE
            one.network("destroy")
            one.network("start")
            assert one.is_known()

        host.reboot()
        wait_until("both labs are known again", lambda: one.is_known() and two.is_known())
        host.run("sed -i 2d /etc/NetworkManager/dnsmasq.d/nometal-one.conf")
        assert one.module()["steps"] == ["write NetworkManager", "apply NetworkManager"]
        one.is_forgotten("NetworkManager")
        assert two.is_known()
        two.module(state="absent")
        assert snapshot.take(host).diff(before, without=[*OF_THEMSELVES, *NOTED_BY_MANAGER]) == ""
