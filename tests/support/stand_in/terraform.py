"""How releases before 4.16 make the infrastructure: with terraform, which brings up the control plane itself."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from support.stand_in import scenario
from support.stand_in.ending import INFRASTRUCTURE, Failed
from support.stand_in.host import AVAILABLE, PROVISIONED
from support.stand_in.lab import Lab
from support.stand_in.log import Log
from support.stand_in.scenario import CONTROL_PLANE
from support.stand_in.servers import IRONIC

FAILED = (
    'failed to fetch Cluster: failed to generate asset "Cluster": failed to create cluster: failed to apply Terraform'
)
STEPS, SECONDS = 900, 120


def bootstrap_lines(event_log: Log) -> None:
    for what in ("libvirt_pool.bootstrap", "libvirt_volume.bootstrap", "libvirt_ignition.bootstrap"):
        event_log.debug(f"module.bootstrap.{what}: Creating...")
        event_log.debug(f"module.bootstrap.{what}: Creation complete after 0s")
    event_log.debug("module.bootstrap.libvirt_domain.bootstrap: Creating...")
    event_log.debug("module.bootstrap.libvirt_domain.bootstrap: Creation complete after 1s")


def control_plane(lab: Lab, event_log: Log) -> None:
    """Ends with this process, and leaves hosts where they are then."""
    _bring_to(AVAILABLE, "ironic_node_v1.openshift-master-host", "", lab, event_log)
    _bring_to(PROVISIONED, "ironic_deployment.openshift-master-deployment", "/active", lab, event_log)


def _bring_to(state: str, what: str, verb: str, lab: Lab, event_log: Log) -> None:
    started, names = time.monotonic(), [str(host["name"]) for host in lab.hosts("master", "arbiter")]
    for number, name in enumerate(names):
        event_log.debug(f"module.masters.{what}[{number}]: Creating...")
        _ironic(lab, "POST", f"/v1/nodes/{name}{verb}")
    left = dict(enumerate(names))
    while left:
        states, passed = _ironic(lab, "GET", "/v1/nodes"), time.monotonic() - started
        for number in [number for number, name in left.items() if states[name] == state]:
            event_log.debug(
                f"module.masters.{what}[{number}]: Creation complete after {passed:.0f}s [id={left.pop(number)}]"
            )
        for number in left:
            event_log.debug(f"module.masters.{what}[{number}]: Still creating... [{passed:.0f}s elapsed]")
        _give_up(lab, what, min(left, default=0), passed)
        time.sleep(max(scenario.read(lab.name).speed, 0.05))


def _give_up(lab: Lab, what: str, number: int, passed: float) -> None:
    play = scenario.read(lab.name)
    longest = play.timeout or max(STEPS * play.speed, SECONDS)
    if passed > (play.speed * 5 if play.fail == CONTROL_PLANE else longest) and play.hang != CONTROL_PLANE:
        why = play.message or "timeout while waiting for the node to become ready"
        raise Failed(INFRASTRUCTURE, f"{FAILED}: error(CreatingInfrastructure): module.masters.{what}[{number}]: {why}")


def _ironic(lab: Lab, method: str, path: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(lab.api_vips[0], IRONIC, timeout=10)
    try:
        connection.request(method, path)
        found: dict[str, Any] = json.loads(connection.getresponse().read())
    except OSError as error:
        where = f"http://{lab.api_vips[0]}:{IRONIC}"
        raise Failed(INFRASTRUCTURE, f"{FAILED}: could not contact Ironic API at {where}: {error}") from error
    finally:
        connection.close()
    return found
