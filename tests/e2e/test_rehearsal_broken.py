"""Labs that are really broken: the rehearsal names what is wrong, does not keep anybody waiting, and leaves no trace.

Each test breaks a thing or a few that do not hide each other, rehearses with one node, and mends the lab. What the
rehearsal must say is in `support/rehearsal_faults.py`. With `--record`, what it has observed is recorded.
Recordings are judged in `make test`, which rehearses with faults of BMCs in test_rehearsal.py.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, made_lab, rehearsal_lab, rehearsal_recorder
from support import rehearsal_faults as faults
from support.guest_lab import Lab
from support.rehearsal_faults import (
    API,
    NEIGHBOUR_MAC,
    NETWORK,
    NODE,
    OTHER,
    OTHERS,
    POOL,
    READ_ONLY,
    ROGUE,
    SERVICE,
    VM,
    WRONG_MAC,
)
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from support.rehearsal_lab import Checks

    Fault = Callable[[Checks], None]
    Rehearse = Callable[..., None]

pytestmark = pytest.mark.full

SOFTWARE = "/opt/nometal/bmc"
WHERE = "import nometal_bmc; print(nometal_bmc.__path__[0])"
CREDENTIALS = "/var/lib/nometal/bmc/rehearsal/credentials.json"
DISK = "/var/lib/libvirt/images/nometal-rehearsal/rehearsal-worker-0-0.qcow2"
AGENT = checkout.ROOT / "plugins/module_utils/_agent"
# A machine on the installer's bridge that is none of the lab's.
NEIGHBOUR = """
ip netns add neighbour
ip link add eth0 netns neighbour address "$2" type veth peer name neighbour
ip link set neighbour master baremetal up
ip -n neighbour link set eth0 up
ip -n neighbour addr add "$1"/24 dev eth0
"""
DHCP_SERVER = [
    *("systemd-run", "--quiet", "--collect", "--unit=rogue", "ip", "netns", "exec", "neighbour"),
    *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--pid-file="),
    *("--interface=eth0", "--dhcp-range=192.168.126.200,192.168.126.210", "--dhcp-leasefile=/run/rogue.leases"),
]
TAKE_LEASES = """
import sys
sys.path.insert(0, "/root/guest")
from agent import dhcp4
for number in range(int(sys.argv[1])):
    assert dhcp4.ask("eth0", f"52:54:00:99:00:{number:02x}", 5.0)[0]
"""
# As releases of BMC emulators had it: what is done once is done for ever, and what is ejected stays in.
DISOBEDIENT = {
    "boot.py": """
_put = put
use_up = lambda *_words: None
def put(root, override):
    if override.target != "Hdd":
        _put(root, override)
""",
    "media.py": """
_disc = Media.disc
def _eject(self, uuid):
    self._turns[uuid] = "ejected"
Media.eject = _eject
Media.disc = lambda self, uuid: None if self._turns.get(uuid) == "ejected" else _disc(self, uuid)
""",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with made_lab.start(firmware="bios") as host:
        lab = Lab(host, tmp_path_factory.mktemp("lab"))
        lab.specify(firmware="bios")
        yield lab


@pytest.fixture
def lab(made: Lab) -> Iterator[Lab]:
    yield made
    assert rehearsal_lab.left_behind(made.host, made.inventory) == []


@contextmanager
def mended_by(lab: Lab, playbooks: str) -> Iterator[None]:
    """As the advice says."""
    try:
        yield
    finally:
        lab.play(playbooks)


@pytest.fixture
def rehearse(lab: Lab, request: pytest.FixtureRequest) -> Rehearse:
    """Rehearse a lab with this fault and hold what failed to it; a recording has its name."""

    def rehearse(fault: Fault, nodes: Collection[str] = (NODE,)) -> None:
        if request.config.getoption("--record"):
            result = rehearsal_recorder.rehearse(lab.host, lab.inventory, nodes, fault.__name__)
        else:
            result = rehearsal_lab.rehearse(lab.inventory, nodes)
        assert not result["ok"]
        fault(rehearsal_lab.checks(result))

    return rehearse


@contextmanager
def neighbour(lab: Lab, address: str) -> Iterator[None]:
    lab.host.run(["sh", "-ec", NEIGHBOUR, "-", address, NEIGHBOUR_MAC])
    try:
        yield
    finally:
        lab.host.run("ip netns del neighbour")


@contextmanager
def leases_taken(lab: Lab, number: int) -> Iterator[None]:
    lab.host.copy_tree(AGENT, "/root/guest/agent")
    with neighbour(lab, ROGUE):
        lab.host.run(["ip", "netns", "exec", "neighbour", "python3", "-Ic", TAKE_LEASES, str(number)])
    try:
        yield
    finally:
        shown = lab.host.run(f"virsh net-dhcp-leases {NETWORK}").stdout
        for mac, address in re.findall(r"(52:54:00:99\S+) +ipv4 +([\d.]+)/", shown):
            lab.host.run(["dhcp_release", "nm-rehearsal", address, mac])


@contextmanager
def rule(lab: Lab, chain: str, text: str) -> Iterator[None]:
    lab.host.run(f"iptables -I {chain} {text}")
    try:
        yield
    finally:
        lab.host.run(f"iptables -D {chain} {text}")


def edit_vm(lab: Lab, *changes: tuple[str, str]) -> None:
    """As with `virsh edit`."""
    text = lab.host.run(["virsh", "dumpxml", "--inactive", VM]).stdout
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    lab.host.run(["virsh", "define", "/dev/stdin"], input=text)


def node(lab: Lab) -> dict[str, Any]:
    return next(node for node in lab.model["nodes"] if node["name"] == NODE)


def test_a_link_that_is_down_ends_it_before_anything_is_started(lab: Lab, rehearse: Rehearse) -> None:
    with mended_by(lab, "network"):
        lab.host.run("ip link set nmb-rehearsal down")
        rehearse(faults.link_down)


def test_a_network_that_is_stopped_ends_it_before_anything_is_started(lab: Lab, rehearse: Rehearse) -> None:
    with mended_by(lab, "network"):
        lab.host.run(["virsh", "net-destroy", NETWORK])
        rehearse(faults.network_stopped)


def test_a_missing_record_a_second_server_and_small_frames_are_named_in_one_go(lab: Lab, rehearse: Rehearse) -> None:
    with mended_by(lab, "network"):
        lab.host.run(f"virsh net-update {NETWORK} delete dns-host \"<host ip='{API}'/>\" --live --config")
        lab.host.run("ip link set nmb-rehearsal mtu 1400")
        with neighbour(lab, ROGUE):
            lab.host.run(DHCP_SERVER)
            try:
                rehearse(faults.record_missing_second_server_small_frames)
            finally:
                lab.host.run("systemctl stop rogue")


def test_a_server_without_addresses_is_named_with_who_has_them(lab: Lab, rehearse: Rehearse) -> None:
    with leases_taken(lab, POOL + OTHERS):
        rehearse(faults.server_without_addresses)


def test_a_used_up_pool_an_address_that_somebody_has_and_a_stopped_bmc_are_named(lab: Lab, rehearse: Rehearse) -> None:
    with mended_by(lab, "bmc"), leases_taken(lab, POOL), neighbour(lab, API):
        lab.host.run(["systemctl", "stop", SERVICE])
        rehearse(faults.pool_used_up_address_taken_bmc_stopped)


def test_a_filtered_bmc_and_untranslated_addresses_are_named(lab: Lab, rehearse: Rehearse) -> None:
    lab.host.run("iptables -t nat -F LIBVIRT_PRT")
    with rule(lab, "INPUT", "-i nm-rehearsal -p tcp --dport 8000 -j DROP"):
        rehearse(faults.bmc_filtered_addresses_untranslated)
    lab.host.run("systemctl restart libvirtd")
    translated = "iptables -t nat -S LIBVIRT_PRT | grep MASQUERADE"
    wait_until("rules are back", lambda: lab.host.run(translated, check=False).returncode == 0)


def test_a_wrong_password_and_a_medium_that_the_bmc_cannot_fetch_are_named(lab: Lab, rehearse: Rehearse) -> None:
    kept = json.loads(lab.host.read(CREDENTIALS))
    kept[VM]["password"] += "?"
    with mended_by(lab, "bmc"), rule(lab, "OUTPUT", f"-d {API} -p tcp --dport 6180 -j DROP"):
        lab.host.write(CREDENTIALS, json.dumps(kept), "0600")
        rehearse(faults.password_wrong_medium_out_of_reach, nodes=(NODE, OTHER))


def test_a_boot_order_that_the_bmc_does_not_change_is_named(lab: Lab, rehearse: Rehearse) -> None:
    with mended_by(lab, "bmc"):
        place = lab.host.run([f"{SOFTWARE}/bin/python", "-c", WHERE]).stdout.strip()
        for name, text in DISOBEDIENT.items():
            lab.host.run(f"cat >>{place}/{name}", input=text)
        lab.host.run(["systemctl", "restart", SERVICE])
        rehearse(faults.boot_order_not_changed)


def test_a_wrong_mac_a_disk_that_takes_no_data_and_a_host_that_forwards_nothing_are_named(
    lab: Lab, rehearse: Rehearse
) -> None:
    with mended_by(lab, "nodes"):
        edit_vm(lab, (node(lab)["boot_mac"], WRONG_MAC), ("<serial>", f"{READ_ONLY}<serial>"))
        lab.host.run("sysctl -q net.ipv4.ip_forward=0")
        rehearse(faults.mac_wrong_disk_read_only_nothing_forwarded)
        edit_vm(lab, (f"{READ_ONLY}\n      <serial>", "<serial>"))
        lab.host.run("sysctl -q net.ipv4.ip_forward=1")


def test_an_installed_system_is_refused_and_untouched(lab: Lab) -> None:
    lab.host.run(["qemu-io", "-c", "write -P 0x66 0 1M", DISK])
    before = lab.host.run(["sha256sum", DISK]).stdout
    result = rehearsal_lab.rehearse(lab.inventory, [NODE])
    assert result["in_use"] == [f"{NODE} carries an installed system"]
    assert (result["checks"], lab.host.run(["sha256sum", DISK]).stdout) == ([], before)
    lab.host.run(["qemu-io", "-c", "discard 0 1M", DISK])
