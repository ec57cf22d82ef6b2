"""A lab that the playbooks have made, with guests in it, and what they must find there whatever befell the host."""

from __future__ import annotations

import ipaddress
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from support import checkout, guest
from support.failures import ending
from support.street import OUTSIDE, OUTSIDE_V6, house_address_v6

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from support.guest import Guest
    from support.lab_host import LabHost
    from support.street import Street

ASKS_EVERY = 60  # seconds: nobody needs that long to answer, however busy the machine is
ECHO_PORT = 7
BMC_PORT = 8000
# It stands for the BMCs, on all of the host's addresses: the firewall alone decides who reaches it.
BMC = f"""
systemctl is-active -q bmc || systemd-run -q --collect -u bmc python3 -m http.server {BMC_PORT} --bind ::
until ss -ltn | grep -q ':{BMC_PORT} '; do sleep 0.05; done
"""


@dataclass(frozen=True)
class Member:
    """A guest, and the addresses of which it must have one of each IP version."""

    guest: Guest
    addresses: Sequence[str]

    def address(self, version: int) -> str:
        return (self.guest.lease4 if version == 4 else self.guest.lease6).address


@dataclass
class Lab:
    """A lab of an inventory that ships, with other values for keys of its lab_spec."""

    host: LabHost
    directory: Path
    inventory: Path = field(init=False)
    model: dict[str, Any] = field(init=False)
    members: dict[str, Member] = field(default_factory=dict)

    def specify(self, lab: str = "rehearsal", **spec: Any) -> None:
        self.inventory = checkout.inventory(self.host, self.directory, lab, **spec)
        written = yaml.safe_load((self.inventory / "group_vars/all/lab.yml").read_text(encoding="utf-8"))
        self.model = lab_model(written["lab_spec"], ["hypervisor"])

    def play(self, playbook: str, *arguments: str) -> None:
        run = checkout.run_playbook(playbook, self.inventory, *arguments)
        assert run.returncode == 0, ending(run.stdout)

    def make_network(self) -> None:
        self.play("host network")

    @property
    def network(self) -> dict[str, Any]:
        return next(network for network in self.model["networks"] if network["role"] == "machine")

    @property
    def versions(self) -> list[int]:
        return [4 if address["family"] == "ipv4" else 6 for address in self.network["addresses"]]

    def switch_on_node(self, name: str, network: str = "", prefix: str = "") -> Guest:
        """A guest with a node's MAC: on the bridge that the installer uses, or in a libvirt network.

        It needs a prefix where the node's VM is there already.
        """
        [node] = [node for node in self.model["nodes"] if node["name"] == name]
        [mac] = [nic["mac"] for nic in node["nics"] if nic["role"] == "machine"]
        return self.switch_on(prefix + name, mac, node["ips"], network)

    def switch_on(self, name: str, mac: str, addresses: Sequence[str], network: str = "") -> Guest:
        bridge = "" if network else self.model["bridge"]
        started = guest.start(self.host, name=f"{self.model['name']}-{name}", mac=mac, bridge=bridge, network=network)
        self.members[name] = Member(started, addresses)
        return started

    def switch_off(self) -> None:
        for member in self.members.values():
            member.guest.stop()
        self.members.clear()

    def assert_all_is_well(self) -> None:
        """Every guest, two at a time, has its address, its names and its ways; the host has the lab's names."""
        self.host.run(BMC)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._assert_well, self.members.values()))
        for name, addresses in self._names().items():
            told = self.host.run(["getent", "ahosts", name]).stdout
            assert {line.split()[0] for line in told.splitlines()} == addresses, f"the host on {name}"

    def assert_the_first_question_is_answered(self) -> None:
        """With the link of each down and up: nothing that it sends at once is lost, so nobody waits to ask again."""
        for member in self.members.values():
            member.guest.rejoin(asks_every=ASKS_EVERY)
            for version in self.versions:
                member.guest.lease(version)
            if 4 in self.versions:
                assert member.guest.times_asked() == 1, member.guest.name

    def _assert_well(self, member: Member) -> None:
        who = member.guest.name
        for version in self.versions:
            lease = member.guest.lease(version)
            assert lease.address in member.addresses, f"{who} has {lease.address}, not one of {member.addresses}"
        self._assert_names(member)
        for address in self._destinations(member):
            assert member.guest.reaches(address), f"{who} does not reach {address}\n{member.guest.routes()}"
        for address in self.network["addresses"]:
            gateway = address["gateway"]
            assert member.guest.connects(gateway, BMC_PORT), f"{who} does not reach the BMCs at {gateway}"

    def _assert_names(self, member: Member) -> None:
        forward = [(name, kind) for name in self._names() for kind in self._kinds()]
        backward = {address: node["fqdn"] for node in self.model["nodes"] for address in node["ips"]}
        answers = member.guest.resolve_all([*forward, *((address, "ptr") for address in backward)])
        found: dict[str, set[str]] = {}
        for (name, _kind), addresses in zip(forward, answers):
            found.setdefault(name, set()).update(addresses)
        assert found == self._names(), f"the names that {member.guest.name} finds"
        names = dict(zip(backward, answers[len(forward) :]))
        assert names == {address: [name] for address, name in backward.items()}, f"{member.guest.name} looks back"

    def _kinds(self) -> list[str]:
        return ["a" if version == 4 else "aaaa" for version in self.versions]

    def _names(self) -> dict[str, set[str]]:
        domain, vips = self.model["domain"], self.model["vips"]
        cluster = {f"api.{domain}": vips["api"], f"api-int.{domain}": vips["api"], f"x.apps.{domain}": vips["ingress"]}
        nodes = {node["fqdn"]: node["ips"] for node in self.model["nodes"][:1]}
        return {name: set(addresses) for name, addresses in {**cluster, **nodes}.items()}

    def _destinations(self, member: Member) -> list[str]:
        """The other guests and the outside."""
        others = [other for other in self.members.values() if other is not member]
        outside = {4: OUTSIDE, 6: OUTSIDE_V6}
        return [
            destination
            for version in self.versions
            for destination in (outside[version], *(other.address(version) for other in others))
        ]


@contextmanager
def echo_outside(street: Street) -> Iterator[None]:
    """Somebody on the street, and far away, who sends back what comes to the TCP port ECHO_PORT."""
    enter = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{street.fd}"]
    listen = f"TCP6-LISTEN:{ECHO_PORT},fork,reuseaddr,ipv6only=0"
    with subprocess.Popen([*enter, "socat", listen, "EXEC:cat"]) as listener:
        yield
        listener.terminate()


@contextmanager
def road_into(lab: Lab, street: Street) -> Iterator[None]:
    """The street's router sends to the lab's host what is meant for the lab."""
    roads = [
        [
            address["cidr"],
            "via",
            lab.host.address if address["family"] == "ipv4" else house_address_v6(lab.host.facts["number"]),
        ]
        for address in lab.network["addresses"]
    ]
    for road in roads:
        street.run(["ip", "route", "add", *road])
    yield
    for road in roads:
        street.run(["ip", "route", "delete", *road])


def connects_from(street: Street, address: str, port: int) -> bool:
    """Does somebody on the street get a TCP connection?"""
    version = ipaddress.ip_address(address).version
    to = f"TCP{version}:[{address}]:{port}" if version == 6 else f"TCP4:{address}:{port}"
    return street.run(["socat", "-u", "OPEN:/dev/null", f"{to},connect-timeout=2"], check=False).returncode == 0
