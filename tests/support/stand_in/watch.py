"""Waiting for the cluster, stage by stage, as `create cluster` and `wait-for` do it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable

from support.stand_in import release, scenario
from support.stand_in.api import Api, Unreachable
from support.stand_in.ending import Stuck
from support.stand_in.host import PROVISIONED
from support.stand_in.lab import Lab
from support.stand_in.log import Log
from support.stand_in.scenario import API, BOOTSTRAP, CONSOLE, CONTROL_PLANE, ETCD, INITIALIZE, OPERATORS

PATHS = {
    "configmaps": "/api/v1/namespaces/kube-system/configmaps",
    "clusterversions": "/apis/config.openshift.io/v1/clusterversions",
    "clusteroperators": "/apis/config.openshift.io/v1/clusteroperators",
    "etcds": "/apis/operator.openshift.io/v1/etcds",
    "baremetalhosts": "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts",
    "routes": "/apis/route.openshift.io/v1/namespaces/openshift-console/routes",
}
STEPS_OF_A_MINUTE = 15
LEAST_SECONDS = 120  # BMCs, and the machine that tests run on, do not know of steps
FAILS_AFTER = 5
Condition = Callable[[], bool]


@dataclass
class Watch:
    lab: Lab
    api: Api
    event_log: Log
    _said: dict[str, Any] = field(default_factory=dict)
    _why: str = ""
    _changed: float = 0

    def for_the_api(self) -> None:
        self.event_log.info(f"Waiting up to 20m0s (until {_at(20)}) for the Kubernetes API at {self.api.server}...")
        self.until(API, 20, self._api_answers)
        self.event_log.info(f"API v{release.kubernetes(self.lab.version)} up")

    def for_bootstrapping(self) -> None:
        self.event_log.info(f"Waiting up to 1h0m0s (until {_at(60)}) for bootstrapping to complete...")
        if not self.lab.terraform:
            self.until(BOOTSTRAP, 60, lambda: bool(self._hosts()))
            self.event_log.info("  Waiting for baremetal control plane to provision...")
            self.until(CONTROL_PLANE, 60, self._control_plane_is_provisioned)
            self.event_log.info("  Baremetal control plane finished provisioning.")
        self.until(
            BOOTSTRAP if self.lab.terraform else ETCD, 60, lambda: self._read("configmaps", "bootstrap") is not None
        )
        self.event_log.debug("Bootstrap status: complete")
        if self.lab.release >= release.ETCD_IS_WAITED_FOR:
            self.event_log.info("Waiting for the bootstrap etcd member to be removed...")
            self.until(ETCD, 5, self._etcd_member_is_removed)
            self.event_log.info("Bootstrap etcd member has been removed")

    def for_initialization(self) -> None:
        where = f"{self.api.server} to initialize..."
        self.event_log.info(f"Waiting up to 1h0m0s (until {_at(60)}) for the cluster at {where}")
        self.until(INITIALIZE, 60, self._is_initialized)
        self.event_log.debug("Cluster is initialized")

    def for_operators(self) -> None:
        self.event_log.info(
            f"Waiting up to 30m0s (until {_at(30)}) to ensure each cluster operator has finished progressing..."
        )
        self.until(OPERATORS, 30, self._operators_are_stable)
        self.event_log.info("All cluster operators have completed progressing")

    def for_the_console(self) -> None:
        self.event_log.info("Checking to see if there is a route at openshift-console/console...")
        self.until(CONSOLE, 10, lambda: self._read("routes", "console") is not None)
        self.event_log.debug("Route found in openshift-console namespace: console")
        self.event_log.debug("OpenShift console route is admitted")

    def until(self, stage: str, minutes: int, met: Condition) -> None:
        """Fails when the scenario wants it, or when time is up."""
        started = self._changed = time.monotonic()
        while not met():
            play, now = scenario.read(self.lab.name), time.monotonic()
            longest = play.timeout or max(minutes * STEPS_OF_A_MINUTE * play.speed, LEAST_SECONDS)
            told_to = play.fail == stage and self._is_there(stage) and now - self._changed > play.speed * FAILS_AFTER
            if told_to or (now - started > longest and play.hang != stage):
                raise Stuck(stage, play.message or self._why)
            time.sleep(max(play.speed / 2, 0.02))

    def _is_there(self, stage: str) -> bool:
        """Where the cluster is told to fail as well; a host takes its time until then."""
        return stage != CONTROL_PLANE or any("error" in about for about in self._said)

    def _api_answers(self) -> bool:
        found = self._get("/version")
        if found is None:
            self._say("API", f"Still waiting for the Kubernetes API: {self._why}", self.event_log.debug)
        return found is not None

    def _hosts(self) -> dict[str, Any]:
        wanted = {host["name"] for host in self.lab.hosts("master")}
        found = {host["metadata"]["name"]: host["status"] for host in self._list("baremetalhosts")}
        return {name: status for name, status in found.items() if name in wanted and status["provisioning"]["state"]}

    def _control_plane_is_provisioned(self) -> bool:
        hosts = self._hosts()
        for name, status in hosts.items():
            state = status["provisioning"]["state"]
            self._say(name, f"  baremetalhost: {name}: {state}", self.event_log.info)
            if status["errorType"]:
                self._why = f"{name}: {status['errorType']}: {status['errorMessage']}"
                self._say(f"{name}'s error", f"  baremetalhost: {self._why}", self.event_log.warning)
        states = [status["provisioning"]["state"] for status in hosts.values()]
        return len(states) == len(self.lab.hosts("master")) and set(states) == {PROVISIONED}

    def _etcd_member_is_removed(self) -> bool:
        etcd = self._read("etcds", "cluster")
        return etcd is not None and _is(etcd, "EtcdBootstrapMemberRemoved")

    def _is_initialized(self) -> bool:
        version = self._read("clusterversions", "version")
        if version is None:
            return False
        progress = next(item for item in version["status"]["conditions"] if item["type"] == "Progressing")
        if progress["status"] == "True":
            self._why = progress["message"]
            self._say("progress", f"Still waiting for the cluster to initialize: {self._why}", self.event_log.debug)
        return _is(version, "Available")

    def _operators_are_stable(self) -> bool:
        operators = self._list("clusteroperators")
        moving = [item["metadata"]["name"] for item in operators if _is(item, "Progressing")]
        self._why = ", ".join(moving)
        if moving:
            self._say(
                "operators", f"These cluster operators have not finished progressing: {self._why}", self.event_log.debug
            )
        return bool(operators) and not moving

    def unavailable(self) -> list[str]:
        """Operators."""
        return [item["metadata"]["name"] for item in self._list("clusteroperators") if not _is(item, "Available")]

    def _say(self, about: str, text: str, how: Callable[[str], None]) -> None:
        if self._said.get(about) != text:
            self._said[about] = text
            self._changed = time.monotonic()
            how(text)

    def _list(self, resource: str) -> list[Any]:
        found = self._get(PATHS[resource])
        return found["items"] if found else []

    def _read(self, resource: str, name: str) -> Any:
        return self._get(f"{PATHS[resource]}/{name}")

    def _get(self, path: str) -> Any:
        try:
            status, body = self.api.get(path)
        except Unreachable as error:
            self._why = f'Get "{self.api.server}{path}": {error}'
            return None
        return body if status == 200 else None


def _is(item: Any, kind: str) -> bool:
    return any(found["type"] == kind and found["status"] == "True" for found in item["status"]["conditions"])


def _at(minutes: int) -> str:
    return time.strftime("%I:%M%p UTC", time.gmtime(time.time() + 60 * minutes)).lstrip("0")
