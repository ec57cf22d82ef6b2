"""What must be found to be wrong with installations, by fault: on whole hosts, and of what was recorded there.

By fault, of each finding its subject, its code and its facts; where these differ from host to host, patterns for them.
The wording of what was recorded is in tests/unit/cluster/stalls.txt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

BOOTSTRAP = re.compile(r"lab-[a-z0-9]{5}-bootstrap")
MACS = re.compile(r"\['52:54:00(:[0-9a-f]{2}){3}'\]")
ADDRESS = re.compile(r"192\.168\.126\.\d+")
NAME, VIP = "api.lab.lab.example.test", "192.168.126.5"
IN_MINE = "in table inet mine, chain in"
EVERY_NODE = [f"control-plane-{number}" for number in range(3)]
EVERY_VM = [f"lab-{name}" for name in EVERY_NODE]
SILENT = re.compile("timed out|No route to host")
REFUSED = {"vip": VIP, "error": "Connection refused"}
NOT_UP = ("API", "api.not-up", {**REFUSED, "address": ADDRESS})

Expected = tuple[str, str, "Mapping[str, Any]"]
FAULTS: dict[str, Sequence[Expected]] = {
    "bootstrap_without_address": (
        ("host", "host.filtered", {"rule": f"`udp dport 67 drop` {IN_MINE}", "port": 67, "serves": "dhcp"}),
        ("bootstrap", "bootstrap.no-address", {"name": BOOTSTRAP, "macs": MACS, "is_filtered": True}),
    ),
    "static_bootstrap_without_carrier": (("bootstrap", "bootstrap.no-carrier", {"name": BOOTSTRAP, "macs": MACS}),),
    "nodes_off": (("API", "api.nodes-off", {"vip": VIP, "error": SILENT, "nodes": EVERY_NODE, "vms": EVERY_VM}),),
    "bmcs_stopped": (("BMC", "bmc.no-answer", {"nodes": EVERY_NODE, "error": re.compile(r".*Connection refused")}),),
    "failed_at_once": (),
    "api_not_up": (NOT_UP,),
    "libvirt_stopped": (
        ("host", "host.libvirt-silent", {"error": re.compile(r".*qemu:///system.*")}),
        ("API", "api.not-up", {**REFUSED, "address": ""}),
    ),
    "api_name_unknown": (
        ("names", "names.wrong", {"name": NAME, "addresses": [], "wanted": [VIP]}),
        NOT_UP,
    ),
    "bmcs_filtered": (
        ("host", "host.filtered", {"rule": f"`tcp dport 8000 drop` {IN_MINE}", "port": 8000, "serves": "bmcs"}),
        ("BMC", "bmc.timeout", {"nodes": EVERY_NODE, "error": re.compile(r".*timed out")}),
    ),
    "bmc_passwords_changed": (("BMC", "bmc.password", {"nodes": EVERY_NODE, "error": ""}),),
    "bootstrap_switched_off": (("bootstrap", "bootstrap.not-running", {"name": BOOTSTRAP, "state": "off"}),),
}


def judge(fault: str, found: Sequence[Finding]) -> None:
    expected = FAULTS[fault]
    assert [(each.subject, each.code) for each in found] == [(subject, code) for subject, code, _facts in expected]
    for (_subject, _code, facts), finding in zip(expected, found):
        assert facts.keys() == finding.facts.keys(), finding
        assert all(_is(fact, finding.facts[name]) for name, fact in facts.items()), finding


def _is(expected: Any, seen: Any) -> bool:
    return bool(expected.fullmatch(str(seen))) if isinstance(expected, re.Pattern) else expected == seen
