"""What the rehearsal must say of labs that are broken, by fault: on whole hosts, and of what was recorded there.

Each function is a fault, and is given what failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.rehearsal_lab import Checks

NODE, OTHER = "worker-0", "control-plane-0"
VM = "rehearsal-worker-0"
NETWORK = "nometal-rehearsal"
SERVICE = "nometal-bmc-rehearsal"
API = "192.168.126.5"
READ_ONLY = "<readonly/>"
ROGUE = "192.168.126.66"
NEIGHBOUR_MAC = "02:00:00:00:00:66"
"""Of the machine on the installer's bridge that is none of the lab's."""
WRONG_MAC = "52:54:00:66:66:66"
POOL, OTHERS = 8, 20
"""Addresses for bootstrap VMs, and for everybody else."""
USED_UP = f"is used up: its {POOL} addresses are leased to 52:54:00:99:00:00"


def link_down(failed: Checks) -> None:
    assert "Link nmb-rehearsal is down" in failed["host", "installer's bridge"]["advice"]
    assert "bootstrap" not in {who for who, _check in failed}


def network_stopped(failed: Checks) -> None:
    assert {who for who, _check in failed} == {"host"}
    for check in failed.values():
        assert f"libvirt network {NETWORK} is not running" in check["advice"]


def record_missing_second_server_small_frames(failed: Checks) -> None:
    names = {("host", "names on the host"), ("bootstrap", "names"), ("bootstrap", "reverse names")}
    assert set(failed) == {*names, ("bootstrap", "DHCP servers"), ("bootstrap", "full-size frames")}
    for name in names:
        assert f"{NETWORK} has no DNS record of api" in failed[name]["advice"]
    assert f"A second DHCP server, {ROGUE} ({NEIGHBOUR_MAC})" in failed["bootstrap", "DHCP servers"]["advice"]
    assert "MTU of nmb-rehearsal is 1400" in failed["bootstrap", "full-size frames"]["advice"]


def server_without_addresses(failed: Checks) -> None:
    assert set(failed) == {("bootstrap", "address"), ("bootstrap", "DHCP servers")}
    for check in failed.values():
        assert USED_UP in check["advice"]


def pool_used_up_address_taken_bmc_stopped(failed: Checks) -> None:
    assert set(failed) == {("bootstrap", "address"), ("bootstrap", "virtual addresses free"), (NODE, "BMC answers")}
    assert USED_UP in failed["bootstrap", "address"]["advice"]
    assert f"It is {API} ({NEIGHBOUR_MAC})" in failed["bootstrap", "virtual addresses free"]["advice"]
    assert f"service {SERVICE} does not run" in failed[NODE, "BMC answers"]["advice"]


def bmc_filtered_addresses_untranslated(failed: Checks) -> None:
    assert set(failed) == {("bootstrap", "way out"), (NODE, "BMC answers")}
    assert "it is filtered between them, by `iifname" in failed[NODE, "BMC answers"]["advice"]
    assert "chain INPUT" in failed[NODE, "BMC answers"]["advice"]
    assert "rules that translate 192.168.126.0/24 are gone" in failed["bootstrap", "way out"]["advice"]
    assert "playbooks/network.yml repairs it" in failed["bootstrap", "way out"]["advice"]


def password_wrong_medium_out_of_reach(failed: Checks) -> None:
    assert set(failed) == {("host", "virtual addresses"), (NODE, "BMC login"), (OTHER, "power and media")}
    assert "does not know the password" in failed[NODE, "BMC login"]["advice"]
    assert f"must reach http://{API}:6180" in failed[OTHER, "power and media"]["advice"]
    for check in (failed["host", "virtual addresses"], failed[OTHER, "power and media"]):
        assert "chain OUTPUT" in check["advice"]


def boot_order_not_changed(failed: Checks) -> None:
    assert set(failed) == {(NODE, "boots from its disk")}
    check = failed[NODE, "boots from its disk"]
    assert check["seen"] == "it booted its medium again"
    assert "in its drive, although its BMC had ejected it" in check["advice"]
    assert "boot order cdrom, disk, interface, although its BMC was told disk" in check["advice"]


def mac_wrong_disk_read_only_nothing_forwarded(failed: Checks) -> None:
    assert set(failed) == {(NODE, "MAC address"), (NODE, "disk written"), ("bootstrap", "way out")}
    assert "another MAC address than its reservation" in failed[NODE, "MAC address"]["advice"]
    assert failed[NODE, "MAC address"]["seen"] == WRONG_MAC
    assert f"take {READ_ONLY} out with `virsh edit {VM}`" in failed[NODE, "disk written"]["advice"]
    assert "does not forward ipv4 packets" in failed["bootstrap", "way out"]["advice"]


FAULTS = {
    fault.__name__: fault
    for fault in (
        link_down,
        network_stopped,
        record_missing_second_server_small_frames,
        server_without_addresses,
        pool_used_up_address_taken_bmc_stopped,
        bmc_filtered_addresses_untranslated,
        password_wrong_medium_out_of_reach,
        boot_order_not_changed,
        mac_wrong_disk_read_only_nothing_forwarded,
    )
}
