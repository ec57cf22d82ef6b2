"""What the log's lines mean, each by itself and in whole logs of each family of releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import log, terraform
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome as endings
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.operators import Operators
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress, progress_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage, begun_by
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.run import Run

LOGS = Path(__file__).with_name("logs")
HOSTS = ["control-plane-0", "control-plane-1", "control-plane-2"]
API = "https://api.demo.lab.example.test:6443"
INITIALIZE = "Still waiting for the cluster to initialize: "


def progress_in(name: str) -> Progress:
    return progress_of(log.entries((LOGS / f"{name}.log").read_text(encoding="utf-8")), HOSTS)


def after(*messages: str, level: str = "info") -> Progress:
    return progress_of((log.Entry(float(at), level, msg) for at, msg in enumerate(messages, 1)), HOSTS)


@pytest.mark.parametrize(
    ("msg", "stage"),
    [
        ("OpenShift Installer 4.20.3", Stage.PREPARE),
        ("Creating infrastructure resources...", Stage.INFRASTRUCTURE),
        (f"Waiting up to 20m0s for the Kubernetes API at {API}...", Stage.API),
        (f"Waiting up to 20m0s (until 10:34AM) for the Kubernetes API at {API}...", Stage.API),
        (f"Waiting up to 20m0s (until 2:33AM UTC) for the Kubernetes API at {API}...", Stage.API),
        ("Waiting up to 30m0s for bootstrapping to complete...", Stage.BOOTSTRAP),
        ("Waiting up to 1h0m0s (until 10:25AM EST) for bootstrapping to complete...", Stage.BOOTSTRAP),
        ("  Waiting for baremetal control plane to provision...", Stage.CONTROL_PLANE),
        ("Waiting up to 30m0s (until 1:02PM UTC) for baremetal control plane to provision...", Stage.CONTROL_PLANE),
        ("  Baremetal control plane finished provisioning.", Stage.BOOTSTRAP),
        ("Waiting for the bootstrap etcd member to be removed...", Stage.ETCD),
        ("Waiting up to 5m0s (until 2:57PM CEST) for the bootstrap etcd member to be removed...", Stage.ETCD),
        ("Destroying the bootstrap resources...", Stage.DESTROY_BOOTSTRAP),
        ("libvirt: Destroying bootstrap", Stage.DESTROY_BOOTSTRAP),
        (f"Waiting up to 1h0m0s for the cluster at {API} to initialize...", Stage.INITIALIZE),
        (f"Waiting up to 1h0m0s (until 1:52PM CET) for the cluster at {API} to initialize...", Stage.INITIALIZE),
        (
            "Waiting up to 30m0s (until 1:50PM CET) to ensure each cluster operator has finished progressing...",
            Stage.OPERATORS,
        ),
        ("Checking to see if there is a route at openshift-console/console...", Stage.CONSOLE),
        ("Waiting up to 10m0s for the openshift-console route to be created...", Stage.CONSOLE),
        ("Install complete!", Stage.COMPLETE),
        ("Still waiting for the Kubernetes API: connection refused", None),
        (f"{INITIALIZE}Working towards 4.20.3: 1 of 2 done (50% complete)", None),
        ("Waiting up to", None),
        ("", None),
    ],
)
def test_which_line_begins_a_stage(msg: str, stage: Stage | None) -> None:
    assert begun_by(msg) is stage


@pytest.mark.parametrize(
    ("msg", "state", "trouble"),
    [
        ("  baremetalhost: a: uninitialized", "uninitialized", ""),
        ("  baremetalhost: a: provisioned", "provisioned", ""),
        ("  baremetalhost: a: externally provisioned", "externally provisioned", ""),
        ("  baremetalhost: a: inspection error: timed out: x", "", "inspection error: timed out: x"),
        ("  baremetalhost: a: error: no route", "", "error: no route"),
        ("  baremetalhost: a: : ", "", ":"),
    ],
)
def test_hosts(msg: str, state: str, trouble: str) -> None:
    [host] = after(msg).hosts.values()
    assert (host.state, host.trouble) == (state, trouble)


def test_a_hosts_trouble_is_over_with_its_next_state() -> None:
    progress = after(*(f"  baremetalhost: a: {said}" for said in ("inspecting", "inspection error: x", "inspecting")))
    assert progress.hosts["a"].trouble == "inspection error: x"
    progress.add(log.Entry(9.0, "info", "  baremetalhost: a: preparing"))
    assert (progress.hosts["a"].state, progress.hosts["a"].since, progress.hosts["a"].trouble) == ("preparing", 9.0, "")


@pytest.mark.parametrize(
    ("msg", "expected"),
    [
        ("module.masters.ironic_node_v1.openshift-master-host[1]: Creating...", ("1", "inspecting")),
        ("ironic_node_v1.openshift-master-host[2]: Still creating... [59m50s elapsed]", ("2", "inspecting")),
        ('ironic_node_v1.openshift-master-host["m-0"]: Creating...', ("m-0", "inspecting")),
        ("module.masters.ironic_node_v1.openshift-master-host[0]: Creation complete after 26m11s", ("0", "available")),
        (
            "module.masters.data.ironic_introspection.openshift-master-introspection[0]: Reading...",
            ("0", "inspecting"),
        ),
        ("ironic_deployment.openshift-master-deployment[0]: Still creating... [10s elapsed]", ("0", "provisioning")),
        ("ironic_deployment.openshift-master-deployment[0]: Creation complete after 1m3s [id=6]", ("0", "provisioned")),
    ],
)
def test_terraform(msg: str, expected: tuple[str, str]) -> None:
    said = terraform.said(msg)
    assert said
    assert (said.host, said.state) == expected


@pytest.mark.parametrize(
    ("msg", "made"),
    [
        ("module.bootstrap.libvirt_domain.bootstrap: Creation complete after 0s [id=ab]", True),
        ("libvirt_domain.bootstrap: Creation complete after 2s [id=ab]", True),
        ("libvirt_domain.bootstrap: Creating...", False),
    ],
)
def test_terraforms_bootstrap(msg: str, made: bool) -> None:
    assert terraform.said(msg) == terraform.Said(bootstrap_made=made)


@pytest.mark.parametrize(
    "msg",
    [
        "module.masters.ironic_allocation_v1.openshift-master-allocation[2]: Creation complete after 3s [id=9f]",
        "module.bootstrap.libvirt_volume.bootstrap: Still creating... [2m10s elapsed]",
        "Apply complete! Resources: 14 added, 0 changed, 0 destroyed.",
    ],
)
def test_other_resources(msg: str) -> None:
    assert terraform.said(msg) is None


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (["Working towards 4.7.0: downloading update"], ""),
        (["Working towards 4.3.10: 96% complete"], "96%"),
        (
            ["Working towards 4.3.1: 99% complete, waiting on console, monitoring"],
            "99%, waiting for console, monitoring",
        ),
        (["Working towards 4.7.13: 634 of 669 done (94% complete)"], "634 of 669 (94%)"),
        (
            ["Working towards 4.14.0: 846 of 862 done (98% complete), waiting on authentication, console"],
            "846 of 862 (98%), waiting for authentication, console",
        ),
        (
            ["Working towards 4.14.0: 846 of 862 done (98% complete), waiting up to 40 minutes on console"],
            "846 of 862 (98%), waiting for console",
        ),
        (["Some cluster operators are still updating: authentication, ingress"], "waiting for authentication, ingress"),
        (["Cluster operator authentication is not available"], "waiting for authentication"),
        (["Cluster operators authentication, console are not available"], "waiting for authentication, console"),
        (["Cluster operator etcd is updating versions"], "waiting for etcd"),
        (["Unable to apply 4.14.0: some cluster operators are not available"], ""),
        (
            ["Working towards 4.1: 1 of 2 done (50% complete), waiting on a", "Cluster operators b, c are degraded"],
            "1 of 2 (50%), waiting for b, c",
        ),
        (
            [
                "Working towards 4.1: 1 of 2 done (50% complete), waiting on a",
                "Working towards 4.1: 2 of 2 done (100% complete)",
            ],
            "2 of 2 (100%)",
        ),
    ],
)
def test_operators(messages: list[str], words: str) -> None:
    operators = Operators()
    for msg in messages:
        operators.heard(INITIALIZE + msg)
    assert operators.words() == words


def test_what_hinders_operators_comes_on_lines_of_its_own() -> None:
    operators = Operators()
    said = [
        "Multiple errors are preventing progress:",
        "* Cluster operators a, b are not available",
        "* Could not update c",
    ]
    operators.heard(INITIALIZE + said[0])
    operators.heard(said[1])
    operators.heard(said[2])
    assert (operators.waiting, operators.hindrances) == (("a", "b"), ["Could not update c"])
    whole = Operators()
    whole.heard(INITIALIZE + "\n".join(said))
    assert (whole.waiting, whole.hindrances) == (operators.waiting, operators.hindrances)


def test_to_and_fro_is_no_progress() -> None:
    operators = Operators()
    said = [
        ("97% complete, waiting on a, b", True),
        ("98% complete, waiting on a, b", True),
        ("97% complete, waiting on a, b", False),
        ("98% complete, waiting on a, c", False),
        ("98% complete, waiting on a", True),
        ("98% complete, waiting on a, b", False),
    ]
    assert [operators.heard(f"{INITIALIZE}Working towards 4.20.3: {text}") for text, _further in said] == [
        further for _text, further in said
    ]


def test_operators_that_settle() -> None:
    operators = Operators()
    for msg in ("Cluster Operator etcd is Progressing=True Reason=x", "Cluster Operator dns became unstable"):
        operators.heard(msg)
    assert operators.words() == "waiting for dns, etcd"
    operators.heard("Cluster Operator etcd is stable")
    assert operators.words() == "waiting for dns"
    operators.heard("All cluster operators have completed progressing")
    assert operators.words() == ""


COMMON = [Stage.INITIALIZE, Stage.OPERATORS, Stage.CONSOLE, Stage.COMPLETE]
NEWER = [
    *(
        Stage.PREPARE,
        Stage.INFRASTRUCTURE,
        Stage.API,
        Stage.BOOTSTRAP,
        Stage.CONTROL_PLANE,
        Stage.BOOTSTRAP,
        Stage.ETCD,
    ),
    *(Stage.DESTROY_BOOTSTRAP, *COMMON),
]
WITH_TERRAFORM = [
    *(Stage.PREPARE, Stage.INFRASTRUCTURE, Stage.CONTROL_PLANE, Stage.API, Stage.BOOTSTRAP, Stage.DESTROY_BOOTSTRAP),
    *COMMON,
]


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("4.10", [stage for stage in WITH_TERRAFORM if stage is not Stage.OPERATORS]),
        ("4.14", WITH_TERRAFORM),
        ("4.16", [stage for stage in NEWER if stage is not Stage.ETCD]),
        ("4.18", NEWER),
        ("4.20", NEWER),
        ("4.22", NEWER),
        ("5.0", NEWER),
    ],
)
def test_whole_logs(name: str, stages: list[Stage]) -> None:
    progress = progress_in(name)
    assert [span.stage for span in progress.spans] == stages
    assert {host: seen.state for host, seen in progress.hosts.items()} == dict.fromkeys(HOSTS, "provisioned")
    assert progress.version.startswith(name)
    assert progress.complete
    assert (progress.bootstrap_made, progress.control_plane_provisioned, progress.bootstrap_destroyed) == (
        True,
        True,
        True,
    )
    assert progress.console_url == "https://console-openshift-console.apps.demo.lab.example.test"
    assert progress.api_url == API
    assert progress.errors == []
    assert 0 < progress.spent()[Stage.CONTROL_PLANE] < 1800
    assert endings.state_of(run(exit_code=0), progress, completed=True) == "installed"


def test_a_log_that_ends_with_the_apis_time_out() -> None:
    progress = progress_in("okd-api-timeout")
    assert progress.stage is Stage.API
    assert (progress.bootstrap_made, progress.api_up, progress.complete) == (True, False, False)
    assert progress.api_trouble.endswith("connection refused")
    assert progress.errors[-1] == "The bootstrap machine failed to download the release image"


def test_a_log_that_ends_with_terraforms_error() -> None:
    progress = progress_in("4.12-terraform-error")
    assert progress.stage is Stage.INFRASTRUCTURE
    assert progress.errors[0] == "Error: could not contact Ironic API: context deadline exceeded"
    assert not [error for error in progress.errors if error.startswith(" ")]


def test_a_resumed_run_goes_on_with_the_same_cluster() -> None:
    progress = progress_in("4.20-resumed")
    assert (progress.stage, progress.errors) == (Stage.DESTROY_BOOTSTRAP, [])
    assert (progress.bootstrap_made, progress.control_plane_provisioned, progress.bootstrap_destroyed) == (
        True,
        True,
        True,
    )
    resumed = progress.spans[0].begin + 79 * 60
    assert Stage.INFRASTRUCTURE not in progress.spent(resumed)
    assert progress.spent(resumed)[Stage.BOOTSTRAP] == pytest.approx(9.9 * 60, abs=6)


def test_a_new_cluster_has_nothing_of_the_former() -> None:
    progress = progress_in("4.20")
    progress.add(log.Entry(progress.last + 60, "info", "Creating infrastructure resources..."))
    assert (progress.complete, progress.bootstrap_made, progress.bootstrap_destroyed, progress.hosts) == (
        False,
        False,
        False,
        {},
    )
    assert progress.stage is Stage.INFRASTRUCTURE


def run(**others: Any) -> Run:
    noted = {"there": True, "commands": ("create cluster",), "current": "create cluster", "version": "4.20.3"}
    return Run(**{"ended": 1.0, **noted, **others})


CHECK = (
    'failed to fetch Cluster: failed to fetch dependency of "Cluster": failed to generate asset "Platform Provisioning '
    'Check": platform.baremetal.externalBridge: Invalid value: "br0": could not find interface "br0"'
)
SILENT = f'Bootstrap failed to complete: Get "{API}/version": dial tcp 192.168.126.2:6443: connect: connection refused'


@pytest.mark.parametrize(
    ("errors", "failure"),
    [
        ([], ""),
        (
            [
                f"Attempted to gather ClusterOperator status after installation failure: listing: Get {API}",
                SILENT,
                "Failed waiting for Kubernetes API. This error usually happens when there is a problem.",
                "Attempted to gather debug logs after installation failure: failed to get bootstrap addresses",
            ],
            f"{SILENT}.",
        ),
        (
            [
                "Cluster operator console Available is False with Deployment_InsufficientReplicas: 0 replicas",
                "Cluster initialization failed because one or more operators are not functioning properly.",
                "failed to initialize the cluster: Cluster operator console is not available",
            ],
            "failed to initialize the cluster: Cluster operator console is not available.",
        ),
        (
            [CHECK],
            (
                'Platform Provisioning Check: platform.baremetal.externalBridge: Invalid value: "br0": '
                'could not find interface "br0".'
            ),
        ),
        (
            ['failed to fetch Cluster: failed to generate asset "Cluster": failed to create cluster: no disk'],
            "failed to create cluster: no disk.",
        ),
        (["Attempted to gather debug logs after installation failure: no"], ""),
    ],
)
def test_the_first_error_of_a_failure_is_quoted(errors: list[str], failure: str) -> None:
    assert endings.failure(errors) == failure


@pytest.mark.parametrize(
    ("noted", "completed", "state"),
    [
        (run(there=False), False, "nothing"),
        (run(running=True, ended=None), False, "running"),
        (run(exit_code=0), False, "installed"),
        (run(ended=None), True, "installed"),
        (run(ended=None), False, "interrupted"),
        (run(signal=9), False, "interrupted"),
        (run(exit_code=8), False, "interrupted"),
        (run(exit_code=0, commands=("create cluster", "wait-for install-complete")), False, "interrupted"),
        *((run(exit_code=code), False, "failed") for code in (1, 3, 4, 5, 6, 7, 2)),
    ],
)
def test_endings(noted: Run, completed: bool, state: str) -> None:
    assert endings.state_of(noted, Progress(), completed=completed) == state
    assert endings.words(noted, Progress(), state)


@pytest.mark.parametrize(
    ("noted", "log_name", "words"),
    [
        (run(exit_code=3), "", "the install-config is wrong"),
        (run(exit_code=5), "okd-api-timeout", "the API did not come up in time"),
        (run(exit_code=5), "", endings.WORDS[5]),
        (run(exit_code=1), "", endings.WORDS[1]),
        (run(exit_code=1, version="4.10.67"), "okd-api-timeout", "the API did not come up in time"),
        (run(exit_code=1, version="4.12.5"), "4.12-terraform-error", "the control plane could not be provisioned"),
        (run(exit_code=99), "", "it ended with exit code 99, which no release is known to use"),
    ],
)
def test_exit_codes_in_words(noted: Any, log_name: str, words: str) -> None:
    progress = progress_in(log_name) if log_name else Progress()
    if log_name == "4.12-terraform-error":
        progress = progress_in("4.14")
        progress.complete, progress.stage = False, Stage.CONTROL_PLANE
    assert endings.words(noted, progress, "failed") == words


def test_a_killed_installer_is_told_by_its_signal() -> None:
    assert "SIGKILL" in endings.words(run(signal=9), Progress(), "interrupted")
    assert "makes the bootstrap VM" in endings.words(run(), progress_in("4.12-terraform-error"), "interrupted")
