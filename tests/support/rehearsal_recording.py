"""What a rehearsal has observed, as far as it judges and explains by it. Runs in a lab host, too, to record it there.

With the collection on the path, it rehearses as the module does; see `rehearsal_recorder`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal import causes
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Door, Evidence
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check, Observations
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Start
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import rehearsal
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.session import Places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Starts = Mapping[tuple[str, str], Start | None]


@dataclass(frozen=True)
class Recording:
    lab: Lab
    observed: Observations
    host_checks: Sequence[Check]
    """Those that the host has made before anything ran."""
    evidence: Evidence
    can_secure_boot: bool

    def judged(self) -> list[Check]:
        return rehearsal.judged(self.lab, self.observed, can_secure_boot=self.can_secure_boot)

    def explained(self) -> list[Check]:
        return causes.explained(self.lab, self.evidence, [*self.host_checks, *self.judged()])


def written(recording: Recording) -> dict[str, Any]:
    """For JSON."""
    told, found = recording.observed, recording.evidence
    host = {key: asdict(value) if isinstance(value, Check) else value for key, value in told.host.items()}
    return {
        "lab": to_dict(recording.lab),
        "observed": {**vars(told), "host": {**host, "starts": _starts_written(told.host.get("starts", {}))}},
        "host_checks": [asdict(check) for check in recording.host_checks],
        "evidence": {
            **vars(found),
            "links": {name: asdict(link) for name, link in found.links.items()},
            "bmc_doors": [asdict(door) for door in found.bmc_doors],
            "records": sorted(found.records),
            "rules": [asdict(rule) for rule in found.rules],
            "starts": _starts_written(found.starts),
        },
        "can_secure_boot": recording.can_secure_boot,
    }


def read(text: str) -> Recording:
    kept = json.loads(text)
    host, found = kept["observed"]["host"], kept["evidence"]
    checks = {key: Check(**host[key]) for key in ("virtual addresses",) if key in host}
    return Recording(
        lab=from_dict(Lab, kept["lab"]),
        observed=Observations(
            **{**kept["observed"], "host": {**host, **checks, "starts": _starts_read(host["starts"])}}
        ),
        host_checks=[Check(**check) for check in kept["host_checks"]],
        evidence=Evidence(
            **{
                **found,
                "links": {name: Link(**link) for name, link in found["links"].items()},
                "bmc_doors": [Door(**door) for door in found["bmc_doors"]],
                "leases": [(address, mac) for address, mac in found["leases"]],
                "records": set(found["records"]),
                "rules": [Rule(**rule) for rule in found["rules"]],
                "starts": _starts_read(found["starts"]),
            }
        ),
        can_secure_boot=kept["can_secure_boot"],
    )


def _starts_written(starts: Starts) -> dict[str, Any]:
    """By node, then by what it was started for."""
    nodes = dict.fromkeys(node for node, _what in starts)
    return {
        node: {what: asdict(start) if start else None for (whose, what), start in starts.items() if whose == node}
        for node in nodes
    }


def _starts_read(starts: Mapping[str, Mapping[str, Any]]) -> Starts:
    return {
        (node, what): Start(**start) if start else None for node, own in starts.items() for what, start in own.items()
    }


def rehearsed(lab: Mapping[str, Any], image: str, *, can_secure_boot: bool) -> dict[str, Any]:
    """The report, the recording, and what the rehearsal has made of it."""
    judged = mock.patch.object(rehearsal, "judged", wraps=rehearsal.judged)
    explained = mock.patch.object(causes, "explained", wraps=causes.explained)
    of, uri = from_dict(Lab, lab), "qemu:///system"
    with judged as judging, explained as explaining, connect(uri) as connection, rehearsal.alone(of.name):
        report = rehearsal.rehearse(of, Places(Path(image)), connection, can_secure_boot=can_secure_boot)
    _lab, observed = judging.call_args.args
    _lab, evidence, checks = explaining.call_args.args
    made = len(rehearsal.judged(of, observed, can_secure_boot=can_secure_boot))
    recording = Recording(of, observed, checks[: len(checks) - made], evidence, can_secure_boot)
    said = recording.explained()
    return {"report": report, "recording": written(recording), "said": [check.to_dict() for check in said]}


if __name__ == "__main__":
    json.dump(rehearsed(**json.load(sys.stdin)), sys.stdout)
