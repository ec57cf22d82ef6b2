"""A watch of an installation whose log grows, as it is told and as it ends."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from support.waiting import PATIENCE, wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import evidence as diagnosis_evidence
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import Evidence
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import found
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import events, one_watch, power_cycle, watch
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Host, Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Callable

PLANTED = "PLANT-eddSe-CRETp-A55Wd"
API = "https://api.demo.lab.example.test:6443"
NODES = [
    {"name": f"control-plane-{n}", "vm_name": f"demo-control-plane-{n}", "role": "control-plane"} for n in range(3)
]


@dataclass
class Bench:
    """An installer that does as it is told, and a watch of it."""

    paths: paths.Paths
    patience: float = 1.0
    heals: bool = False
    ssh_key: str | None = None
    now: float = field(default_factory=time.time)
    """What the log counts from, however long the test takes."""
    result: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paths.assets.mkdir(parents=True)
        self._lock = self.paths.lock.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.noted: dict[str, Any] = {"commands": ["create cluster"], "current": "create cluster", "version": "4.20.3"}
        self.note(started=self.now, ended=None, exit_code=None, signal=None)

    def note(self, **values: Any) -> None:
        self.noted.update(values)
        self.paths.run.write_text(json.dumps(self.noted))

    def log(self, *messages: str, level: str = "info", ago: float = 0.0) -> None:
        stamp = datetime.fromtimestamp(self.now - ago, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        with self.paths.log.open("a") as file:
            file.writelines(f'time="{stamp}" level={level} msg={json.dumps(message)}\n' for message in messages)

    def start(self) -> None:
        installation = Installation(self.paths, nodes=NODES, libvirt_uri="test:///default", bmc_home="/nowhere")
        self.watch = watch.Watch(replace(installation, ssh_key=self.ssh_key), self.patience, self.heals)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        self.result = self.watch.follow()

    def end(self, exit_code: int | None = None, signal: int | None = None) -> dict[str, Any]:
        self.note(ended=time.time(), exit_code=exit_code, signal=signal)
        return self.vanish()

    def vanish(self) -> dict[str, Any]:
        self._lock.close()
        self._thread.join(PATIENCE)
        assert self.result
        return self.result

    def told(self) -> list[tuple[str, str]]:
        if not self.paths.events.exists():
            return []
        lines = self.paths.events.read_text().splitlines()
        return [(event["who"], event["state"]) for event in map(json.loads, lines)]

    def times(self, who: str) -> list[float]:
        events = map(json.loads, self.paths.events.read_text().splitlines())
        return [event["at"] for event in events if event["who"] == who]

    def wait_for(self, who: str, words: str) -> None:
        def is_told() -> bool:
            return any(name == who and words in state for name, state in self.told())

        wait_until(f"{who} {words}", is_told, seen=self.told)


class Looks:
    """Takes the place of what looks at the nodes."""

    def __init__(self, nodes: Callable[[], list[Node]]) -> None:
        self._nodes = nodes
        self._count = 0

    def __call__(self, _installation: Installation) -> list[Node]:
        self._count += 1
        return self._nodes()

    def wait_for_more(self) -> None:
        """What the first of three has seen is told when the third begins."""
        enough = self._count + 3
        wait_until("the nodes are looked at three times more", lambda: self._count >= enough)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "installs")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(watch, "PAUSE", 0.05)
    return Bench(paths.Paths("demo"))


def test_an_installation_that_succeeds(bench: Bench) -> None:
    bench.log("OpenShift Installer 4.20.3", "Creating infrastructure resources...", ago=300)
    bench.start()
    bench.wait_for("installer", "makes the bootstrap VM (5 min, usually 5 min)")
    bench.log(f"Waiting up to 20m0s (until 10:34AM UTC) for the Kubernetes API at {API}...", "API v1.33.5 up")
    bench.log("Waiting up to 1h0m0s (until 11:34AM UTC) for bootstrapping to complete...")
    bench.log("  Waiting for baremetal control plane to provision...", "  baremetalhost: control-plane-0: inspecting")
    bench.wait_for("control-plane-0", "inspecting")
    bench.log("  baremetalhost: control-plane-0: inspection error: no power", level="warning")
    bench.log("  baremetalhost: control-plane-0: provisioned", "  Baremetal control plane finished provisioning.")
    bench.wait_for("control-plane-0", "provisioned")
    bench.log(f"Waiting up to 1h0m0s (until 12:34AM UTC) for the cluster at {API} to initialize...")
    bench.log(
        "Still waiting for the cluster to initialize: Working towards 4.20.3: 31 of 34 done (91% complete), "
        "waiting on authentication, console",
        level="debug",
    )
    bench.wait_for("operators", "31 of 34 (91%), waiting for authentication, console")
    bench.log("Install complete!", "Access the OpenShift web-console here: https://console.example.test")
    bench.log(f'Login to the console with user: "kubeadmin", and password: "{PLANTED}"')
    result = bench.end(0)
    assert (result["state"], result["exit_code"], result["words"]) == ("installed", 0, "installed")
    assert (result["stage"], result["console_url"], result["api_url"]) == (
        "complete",
        "https://console.example.test",
        API,
    )
    assert result["hosts"] == {"control-plane-0": "provisioned"}
    assert result["troubles"] == ["control-plane-0: inspection error: no power"]
    assert result["password_file"] == str(bench.paths.password)
    assert "control plane" in [stage["stage"] for stage in result["stages"]]
    installer = [state for who, state in bench.told() if who == "installer"]
    assert installer == [
        "makes the bootstrap VM (5 min, usually 5 min)",
        "waits for the API (usually 10 min)",
        "waits for bootstrapping to complete (usually 15 min)",
        "waits for the control plane to be provisioned (usually 20 min)",
        "waits for bootstrapping to complete (usually 15 min)",
        "waits for the cluster to initialize (usually 25 min)",
        "has installed the cluster",
    ]
    assert PLANTED not in json.dumps(result) + bench.paths.events.read_text()


@pytest.mark.parametrize(
    ("noted", "state", "words"),
    [
        ({"exit_code": 5}, "failed", "the API did not come up in time"),
        ({"exit_code": 8}, "interrupted", "asked to end"),
        ({"exit_code": None, "signal": 9}, "interrupted", "killed by SIGKILL"),
    ],
)
def test_an_installation_that_does_not(bench: Bench, noted: dict[str, Any], state: str, words: str) -> None:
    bench.start()
    bench.log(f"Waiting up to 20m0s for the Kubernetes API at {API}...")
    bench.wait_for("installer", "waits for the API")
    bench.log("Failed waiting for Kubernetes API.", level="error")
    result = bench.end(**noted)
    assert (result["state"], result["stage"], result["errors"]) == (
        state,
        "api",
        ["Failed waiting for Kubernetes API."],
    )
    assert words in result["words"]
    assert result["troubles"][-1].startswith(f"installer: {state}: ")
    assert (result["kubeconfig"], result["password_file"]) == ("", "")
    if state == "failed":
        assert "installer: Failed waiting for Kubernetes API." in result["troubles"]
        assert any(finding.startswith("bootstrap: Its VM is gone") for finding in result["diagnosis"])


def test_a_runner_that_vanishes(bench: Bench) -> None:
    bench.start()
    bench.log("Creating infrastructure resources...")
    bench.wait_for("installer", "makes the bootstrap VM")
    result = bench.vanish()
    assert (result["state"], result["exit_code"]) == ("interrupted", None)
    assert "ended without a word" in result["words"]


def test_an_installer_that_completes_without_its_runner(bench: Bench) -> None:
    bench.start()
    bench.log("Creating infrastructure resources...", "Install complete!")
    bench.wait_for("installer", "has installed")
    assert bench.vanish()["state"] == "installed"


def test_what_a_former_installation_has_completed_is_not_this_ones(bench: Bench) -> None:
    bench.log("Creating infrastructure resources...", "Install complete!", ago=600)
    bench.start()
    bench.log("Creating infrastructure resources...")
    bench.wait_for("installer", "makes the bootstrap VM")
    assert bench.end(8)["state"] == "interrupted"


def test_nothing_was_ever_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "installs")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    result = watch.Watch(Installation(paths.Paths("demo"))).follow()
    assert (result["state"], result["stages"], result["stage"]) == ("nothing", [], "")


def test_a_glance_tells_nobody(bench: Bench) -> None:
    bench.log("Creating infrastructure resources...")
    bench.start()
    bench.wait_for("installer", "makes")
    before = bench.paths.events.read_text()
    result = glance(Installation(bench.paths))
    assert (result["state"], result["words"], result["stage"]) == ("running", "create cluster runs", "infrastructure")
    assert bench.paths.events.read_text() == before
    bench.end(8)


def test_who_comes_later_is_told_where_it_stands_and_not_how_it_came_there(bench: Bench) -> None:
    bench.log(
        "Creating infrastructure resources...", f"Waiting up to 20m0s for the Kubernetes API at {API}...", ago=600
    )
    bench.start()
    bench.wait_for("installer", "waits for the API (10 min, usually 10 min)")
    assert bench.told() == [("installer", "waits for the API (10 min, usually 10 min)")]
    bench.end(8)


def test_times_count_from_when_the_installer_began(bench: Bench) -> None:
    bench.note(started=bench.now - 2400)
    bench.log("Creating infrastructure resources...", ago=2300)
    bench.log("  Waiting for baremetal control plane to provision...", ago=1200)
    bench.log("  baremetalhost: control-plane-0: inspecting", ago=600)
    bench.start()
    bench.wait_for("control-plane-0", "inspecting")
    bench.log("Waiting up to 1h0m0s for bootstrapping to complete...", ago=30)
    bench.wait_for("installer", "waits for bootstrapping")
    assert bench.times("installer") == pytest.approx([1200, 2370], abs=1)
    assert bench.times("control-plane-0") == pytest.approx([1800], abs=1)
    result = bench.end(8)
    assert result["state"] == "interrupted"
    now = round(time.time() - bench.now + 2400, 1)
    assert 2400 <= bench.times("installer")[-1] <= now, "that is told of now, in tenths of a second"


def test_what_was_before_the_installer_began_was_so_from_its_beginning(bench: Bench) -> None:
    bench.log(f"Waiting up to 1h0m0s for the cluster at {API} to initialize...", ago=600)
    bench.start()
    bench.wait_for("installer", "initialize")
    assert bench.times("installer") == [0.0]
    bench.end(8)


def test_a_control_plane_that_is_off_after_bootstrapping_is_told_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"control-plane-0": "off", "control-plane-1": "off", "control-plane-2": "running"}
    looks = Looks(lambda: [Node(name, f"demo-{name}", now) for name, now in state.items()])
    monkeypatch.setattr(watch, "nodes_of", looks)
    monkeypatch.setattr(watch, "LOOK_AT_NODES", 0.01)
    bench.log(f"Waiting up to 20m0s for the Kubernetes API at {API}...")
    bench.start()
    bench.wait_for("installer", "waits for the API")
    looks.wait_for_more()
    assert not [who for who, _state in bench.told() if who == "control plane"]
    bench.log(f"Waiting up to 1h0m0s for the cluster at {API} to initialize...")
    bench.wait_for("control plane", "control-plane-0, control-plane-1 are switched off")
    looks.wait_for_more()
    state.update(dict.fromkeys(state, "running"))
    bench.wait_for("control plane", events.ON_AGAIN)
    looks.wait_for_more()
    state["control-plane-0"] = state["control-plane-1"] = "off"
    looks.wait_for_more()
    result = bench.end(8)
    told = [state for who, state in bench.told() if who == "control plane"]
    words = (
        "control-plane-0, control-plane-1 are switched off, and the cluster cannot come up without them: switch them "
        "on with `virsh start demo-control-plane-0; virsh start demo-control-plane-1` on the host, or by their BMCs."
    )
    assert told == [words, events.ON_AGAIN, words]
    assert result["troubles"][:-1] == [f"control plane: {words}"]


def test_a_standstill_is_noticed_and_looked_into_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def look(_installation: Installation) -> Evidence:
        looks.append(1)
        return Evidence(libvirt_trouble="libvirt is away")

    monkeypatch.setattr(diagnosis_evidence, "gather", look)
    monkeypatch.setattr(watch, "nodes_of", lambda _installation: [])
    bench.log(f"Waiting up to 20m0s for the Kubernetes API at {API}...", ago=900)
    bench.start()
    bench.wait_for("host", "libvirt is away")
    bench.log("Still waiting for the Kubernetes API: EOF", level="debug")
    bench.wait_for("installer", "nothing has changed for 15 min")
    result = bench.end(8)
    assert result["diagnosis"] == [
        "host: libvirt does not answer: libvirt is away. See `systemctl status libvirtd`, or virtqemud."
    ]
    [finding] = result["findings"]
    assert (finding["code"], finding["subject"]) == ("host.libvirt-silent", "host")
    assert finding["facts"] == {"error": "libvirt is away"}
    assert len(looks) == 1


def test_an_error_that_the_cluster_no_longer_has_is_not_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis_evidence, "hosts_without_error", lambda _installation: {"control-plane-0"})
    monkeypatch.setattr(diagnosis_evidence, "gather", lambda _installation: Evidence())
    monkeypatch.setattr(watch, "nodes_of", lambda _installation: [])
    bench.log("  Waiting for baremetal control plane to provision...", ago=900)
    for number in range(2):
        bench.log(f"  baremetalhost: control-plane-{number}: inspecting", level="debug", ago=890)
        bench.log(f"  baremetalhost: control-plane-{number}: inspection error: no answer", level="debug", ago=880)
    bench.start()
    bench.wait_for("control-plane-0", "inspecting")
    bench.wait_for("control-plane-1", "for 15 min: inspection error")
    result = bench.end(8)
    lasting = [trouble for trouble in result["troubles"] if " min: inspection error" in trouble]
    assert [trouble.partition(":")[0] for trouble in lasting] == ["control-plane-1"]


def test_a_node_that_hangs_is_reset_once_in_a_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    resets: list[str] = []
    long_ago = time.time() - 3600
    node = Node("control-plane-1", "demo-control-plane-1", "running", on_since=long_ago, spoke_at=0.0, packets=0)

    def cycle(_connection: Any, vm_name: str, name: str, cycled: power_cycle.Cycled) -> str:
        if name in cycled.names():
            return ""
        cycled.note(name)
        resets.append(vm_name)
        return "was reset"

    monkeypatch.setattr(power_cycle, "cycle", cycle)
    looks = Looks(lambda: [node])
    monkeypatch.setattr(watch, "nodes_of", looks)
    monkeypatch.setattr(diagnosis_evidence, "gather", lambda _installation: Evidence())
    bench.patience = 0.0001  # asks again in no time
    bench.start()
    bench.wait_for("control-plane-1", "was reset")
    looks.wait_for_more()
    result = bench.end(8)
    assert resets == ["demo-control-plane-1"]
    assert result["power_cycled"] == ["control-plane-1"]
    assert "without a sign" in result["troubles"][0]
    assert json.loads((bench.paths.directory / power_cycle.FILE).read_text()) == {
        str(bench.noted["started"]): ["control-plane-1"]
    }


@pytest.mark.parametrize("works", [True, False])
def test_a_node_that_holds_the_address_of_the_api_too_early_is_healed_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, works: bool
) -> None:
    node = Node("control-plane-1", "demo-control-plane-1", "running", macs=["52:54:00:00:00:21"], address="192.0.2.21")
    monkeypatch.setattr(watch, "nodes_of", lambda _installation: [node])
    monkeypatch.setattr(diagnosis_evidence, "silent_holders", lambda _vips: {"192.0.2.2": node.macs[0]})
    monkeypatch.setattr(diagnosis_evidence, "gather", lambda _installation: Evidence())
    calls = tmp_path / "calls"
    fails = "" if works else "echo 'Permission denied (publickey).' >&2; exit 255"
    (tmp_path / "ssh").write_text(f'#!/bin/sh\necho "$@" >>{calls}\n{fails}\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    bench.patience = 0.0001
    bench.heals, bench.ssh_key = True, "/root/key"
    bench.log("Waiting up to 1h0m0s for bootstrapping to complete...")
    bench.start()
    bench.wait_for("API", "192.0.2.2 is held by control-plane-1 before bootstrapping is over")
    bench.wait_for("control-plane-1", "its keepalived was stopped" if works else "Permission denied (publickey)")
    result = bench.end(8)
    assert result["healed"] == (["control-plane-1"] if works else [])
    [call] = calls.read_text().splitlines()
    assert "-i /root/key core@192.0.2.21 sudo crictl" in call


@pytest.mark.parametrize("text", ["", "rubbish", "[]", '{"other run": ["a"]}'])
def test_a_record_of_another_run_or_a_damaged_one_counts_for_nothing(tmp_path: Path, text: str) -> None:
    cycled = power_cycle.Cycled(tmp_path / "cycled.json", "this run")
    cycled.path.write_text(text)
    assert cycled.names() == []
    cycled.note("a")
    cycled.note("b")
    assert cycled.names() == ["a", "b"]


def test_nothing_is_told_twice(tmp_path: Path) -> None:
    teller = events.Teller(tmp_path / "runs/events.jsonl")
    for _time in range(2):
        teller.tell_trouble("a", "is broken")
        teller.tell("b", "goes on")
    lines = (tmp_path / "runs/events.jsonl").read_text().splitlines()
    assert [(event["who"], event.get("trouble", False)) for event in map(json.loads, lines)] == [
        ("a", True),
        ("b", False),
    ]


def test_a_trouble_stands_until_the_state_has_changed(tmp_path: Path) -> None:
    teller = events.Teller(tmp_path / "runs/events.jsonl")
    progress = Progress(stage=Stage.CONTROL_PLANE, since=0.0, hosts={"a": Host("inspecting", 0.0)})
    for now in range(3):
        teller.tell_progress(progress, now)
        teller.tell_trouble("a", "is slow")
    progress.hosts["a"] = Host("provisioning", 9.0)
    teller.tell_progress(progress, 9)
    told = [json.loads(line) for line in (tmp_path / "runs/events.jsonl").read_text().splitlines()]
    assert [event["state"] for event in told if event["who"] == "a"] == ["inspecting", "is slow", "provisioning"]
    assert [event.get("part") for event in told] == [0.0, None, None, None]


def test_an_error_that_counts_seconds_is_told_once(tmp_path: Path) -> None:
    teller = events.Teller(tmp_path / "runs/events.jsonl")
    for seconds in (9, 8, 7):
        trouble = f"registration error: code 429. Try again in {seconds} s."
        teller.tell_progress(Progress(stage=Stage.CONTROL_PLANE, hosts={"a": Host("registering", 0.0, trouble)}), 0)
    assert teller.troubles == ["a: registration error: code 429. Try again in 9 s."]


def test_findings_are_told_once_whatever_their_figures_until_something_goes_on(tmp_path: Path) -> None:
    teller = events.Teller(tmp_path / "runs/events.jsonl")
    for load in (7, 8):
        held = found("api.held-by-stranger", "API", vip="192.168.126.5", mac="52:54:00:00:00:99")
        teller.tell_findings([found("host.overloaded", "host", load=load, cores=1), held])
    teller.tell_relief()
    teller.tell_findings([found("host.overloaded", "host", load=9, cores=1)])
    told = [json.loads(line)["state"] for line in (tmp_path / "runs/events.jsonl").read_text().splitlines()]
    assert told[2:4] == [events.RELIEF] * 2
    heads = [text.partition(" on ")[0].partition(",")[0] for text in told if text != events.RELIEF]
    assert heads == [
        "It is overloaded: load 7.0",
        "192.168.126.5 is held by 52:54:00:00:00:99",
        "It is overloaded: load 9.0",
    ]


def test_what_was_overcome_is_not_to_blame_for_what_comes_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [Evidence(libvirt_trouble="libvirt is away")]
    monkeypatch.setattr(diagnosis_evidence, "gather", lambda _installation: seen.pop() if seen else Evidence())
    monkeypatch.setattr(watch, "nodes_of", lambda _installation: [])
    bench.log(f"Waiting up to 20m0s for the Kubernetes API at {API}...", ago=900)
    bench.start()
    bench.wait_for("host", "libvirt is away")
    bench.log("API v1.33.5 up", f"Waiting up to 1h0m0s for the cluster at {API} to initialize...")
    bench.wait_for("host", "gone on")
    bench.log("failed to initialize the cluster", level="fatal")
    result = bench.end(6)
    assert not any("libvirt" in finding for finding in result["diagnosis"])


def test_another_watch_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_watch, "ENDING_SECONDS", -1)
    lock = tmp_path / "watch.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Exception, match=f"process {os.getpid()}: end it"), one_watch.alone(lock):
            pass
