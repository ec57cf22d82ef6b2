"""What the rehearsal must say of labs that are broken, by fault: on whole hosts, and of what was recorded there.

Each function is a fault, and is given what failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def cause(failed: Checks, who: str, check: str) -> tuple[str, dict[str, Any]]:
    found = failed[who, check]["cause"]
    assert found, failed[who, check]
    return found["code"], found["facts"]


def link_down(failed: Checks) -> None:
    assert cause(failed, "host", "installer's bridge") == ("path.link-down", {"link": "nmb-rehearsal"})
    assert "bootstrap" not in {who for who, _check in failed}


def network_stopped(failed: Checks) -> None:
    assert {who for who, _check in failed} == {"host"}
    for who, check in failed:
        assert cause(failed, who, check) == ("path.network-stopped", {"network": NETWORK})


def record_missing_second_server_small_frames(failed: Checks) -> None:
    names = {("host", "names on the host"), ("bootstrap", "names"), ("bootstrap", "reverse names")}
    assert set(failed) == {*names, ("bootstrap", "DHCP servers"), ("bootstrap", "full-size frames")}
    for name in names:
        code, facts = cause(failed, *name)
        assert (code, facts["network"]) == ("dns.record-missing", NETWORK)
        assert facts["names"][0].startswith("api")
    code, facts = cause(failed, "bootstrap", "DHCP servers")
    assert (code, facts["server"]["address"], facts["server"]["mac"]) == ("dhcp.second-server", ROGUE, NEIGHBOUR_MAC)
    code, facts = cause(failed, "bootstrap", "full-size frames")
    assert (code, facts["link"], facts["mtu"]) == ("path.small-mtu", "nmb-rehearsal", 1400)


def server_without_addresses(failed: Checks) -> None:
    assert set(failed) == {("bootstrap", "address"), ("bootstrap", "DHCP servers")}
    for name in failed:
        _is_used_up(failed, *name)


def _is_used_up(failed: Checks, who: str, check: str) -> None:
    code, facts = cause(failed, who, check)
    assert (code, facts["size"], facts["macs"][0]) == ("dhcp.pool-used-up", POOL, "52:54:00:99:00:00")


def pool_used_up_address_taken_bmc_stopped(failed: Checks) -> None:
    assert set(failed) == {("bootstrap", "address"), ("bootstrap", "virtual addresses free"), (NODE, "BMC answers")}
    _is_used_up(failed, "bootstrap", "address")
    code, facts = cause(failed, "bootstrap", "virtual addresses free")
    assert (code, facts["holders"][0]["address"], facts["holders"][0]["mac"]) == ("vip.held", API, NEIGHBOUR_MAC)
    code, facts = cause(failed, NODE, "BMC answers")
    assert (code, facts["service"]) == ("bmc.no-service", SERVICE)


def bmc_filtered_addresses_untranslated(failed: Checks) -> None:
    assert set(failed) == {("bootstrap", "way out"), (NODE, "BMC answers")}
    code, facts = cause(failed, NODE, "BMC answers")
    assert (code, facts["rule"][:8]) == ("bmc.filtered-by-rule", "`iifname")
    assert "chain INPUT" in facts["rule"]
    assert cause(failed, "bootstrap", "way out") == ("filter.no-translation", {"subnet": "192.168.126.0/24"})
    assert "playbooks/network.yml" in failed["bootstrap", "way out"]["cause"]["advice"]


def password_wrong_medium_out_of_reach(failed: Checks) -> None:
    assert set(failed) == {("host", "virtual addresses"), (NODE, "BMC login"), (OTHER, "power and media")}
    login = failed[NODE, "BMC login"]
    assert (login["code"], login["facts"]["step"], login["cause"]) == ("bmc-login", "login", None)
    assert "does not know the password" in login["advice"]
    for name, expected in (
        (("host", "virtual addresses"), "vip.filtered"),
        ((OTHER, "power and media"), "medium.filtered"),
    ):
        code, facts = cause(failed, *name)
        assert (code, facts["url"]) == (expected, f"http://{API}:6180")
        assert "chain OUTPUT" in facts["rule"]


def boot_order_not_changed(failed: Checks) -> None:
    assert set(failed) == {(NODE, "boots from its disk")}
    assert failed[NODE, "boots from its disk"]["seen"] == "it booted its medium again"
    code, facts = cause(failed, NODE, "boots from its disk")
    assert (code, facts["order"], facts["wanted"]) == ("vm.wrong-start", ["cdrom", "disk", "interface"], "disk")
    assert facts["medium"]
    assert not facts["needs_medium"]


def mac_wrong_disk_read_only_nothing_forwarded(failed: Checks) -> None:
    assert set(failed) == {(NODE, "MAC address"), (NODE, "disk written"), ("bootstrap", "way out")}
    mac = failed[NODE, "MAC address"]
    assert (mac["code"], mac["seen"], mac["facts"]) == ("mac-address", WRONG_MAC, {"macs": [WRONG_MAC]})
    assert "another MAC address than its reservation" in mac["advice"]
    code, facts = cause(failed, NODE, "disk written")
    assert (code, facts["vm"]) == ("disk.given-read-only", VM)
    assert READ_ONLY in failed[NODE, "disk written"]["advice"]
    code, facts = cause(failed, "bootstrap", "way out")
    assert (code, facts["family"]) == ("forwarding.off", "ipv4")


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
