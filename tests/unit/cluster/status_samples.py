"""Labs in every state, as module lab_status observes them."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
    Bmcs,
    Certificate,
    Checkpoint,
    Cluster,
    Host,
    Installation,
    Member,
    Network,
    Node,
    Observation,
    Operator,
    Rehearsal,
    Run,
    Storage,
    Vip,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB

CLUSTER = "/var/lib/nometal/install/ha/cluster"
POOL = "/var/lib/libvirt/images/nometal-ha"
RUN = "alice@laptop, playbooks/site.yml (process 4711), since 2026-11-20 11:58:00 UTC, 2 min ago"
HOST = Host(
    name="server",
    distribution="Debian GNU/Linux 12 (bookworm)",
    booted="2026-11-19T08:00:00Z",
    cores=16,
    load=1.25,
    memory_bytes=128 * GIB,
    memory_available_bytes=32 * GIB,
)
STORAGE = Storage("nometal-ha", POOL, True, 210 * GIB, 720 * GIB, 600 * GIB, 900 * GIB)
NETWORK = Network("nometal-ha", "machine", "nm-ha", "active", ["192.168.126.1/24"], [], dnsmasq=True)
BMCS = Bmcs("answers", "https://192.168.126.1:8000", "redfish-virtualmedia", "/var/lib/nometal/bmc/ha/credentials.json")
RUNNING = Installation("running", "create cluster runs", "control plane", "4.20.3")
INSTALLED = Installation(
    state="installed",
    outcome="installed",
    stage="complete",
    version="4.20.3",
    kubeconfig=f"{CLUSTER}/auth/kubeconfig",
    password_file=f"{CLUSTER}/auth/kubeadmin-password",
    client="/var/cache/nometal/tools/ocp-4.20.3/bin/oc",
    console_url="https://console-openshift-console.apps.ha.lab.example.test",
)
FAILED = Installation(
    state="failed",
    outcome="the cluster did not initialize in time",
    stage="initialize",
    version="4.20.3",
    kubeconfig=f"{CLUSTER}/auth/kubeconfig",
    bundle="/var/lib/nometal/install/ha/bundles/ha-20261120T110000Z.tar.gz",
)
REHEARSED = Rehearsal("ok", "2026-11-20T11:00:00Z", page="/var/lib/nometal/labs/ha/rehearsal.html")


def node(name: str, at: int, **differs: object) -> Node:
    role = name.rpartition("-")[0]
    known = Node(
        name=name,
        role=role,
        vm_name=f"ha-{name}",
        power="off",
        bmc=f"https://192.168.126.1:8000/redfish/v1/Systems/{at}",
        address=f"192.168.126.{at}",
        console=f"/var/log/libvirt/qemu/ha-{name}-console.log",
        disk_size_bytes=120 * GIB,
    )
    return replace(known, **differs)  # type: ignore[arg-type]


def nodes(**differs: object) -> list[Node]:
    names = [*(f"control-plane-{number}" for number in range(3)), "worker-0", "worker-1"]
    addresses = [20, 21, 22, 30, 31]
    return [node(name, at, **differs) for name, at in zip(names, addresses)]


def on(at: Node, **differs: object) -> Node:
    return replace(at, **{"power": "on", "leases": [at.address], "disk_bytes": 42 * GIB, **differs})  # type: ignore[arg-type]


def joined(at: Node, **differs: object) -> Node:
    """A node of the cluster that is well."""
    known = Member("provisioned", "", f"ha-x7k2p-{at.name}", "Running", "", at.name, ready=True)
    return on(at, member=replace(known, **differs))  # type: ignore[arg-type]


CLUSTER_WELL = Cluster(
    state="answers",
    version="4.20.3",
    operators=33,
    vips=[
        Vip("API", "192.168.126.5", "control-plane-1", answers=True),
        Vip("ingress", "192.168.126.6", "", answers=True),
    ],
    certificates=[
        Certificate("serving the API", "2026-12-28T10:00:00Z"),
        Certificate("signer of the API server's client certificates for kubelets", "2027-11-19T10:00:00Z"),
    ],
)
MADE = Observation(
    lab="ha",
    domain="ha.lab.example.test",
    time="2026-11-20T12:00:00Z",
    registered=True,
    host=HOST,
    storage=STORAGE,
    networks=[NETWORK],
    bmcs=BMCS,
    nodes=nodes(),
)
ABSENT = replace(
    MADE,
    registered=False,
    storage=Storage("nometal-ha", POOL),
    networks=[replace(NETWORK, state="missing", dnsmasq=None)],
    bmcs=Bmcs(url=BMCS.url, protocol=BMCS.protocol),
    nodes=nodes(power="missing", console=""),
)
WITHOUT_CLUSTER = replace(
    MADE, nodes=[on(each) for each in nodes()], installation=INSTALLED, rehearsal=REHEARSED, installs=True
)
RAN = replace(WITHOUT_CLUSTER, nodes=[joined(each) for each in nodes()], cluster=CLUSTER_WELL)
CASES: dict[str, Observation] = {
    "absent": ABSENT,
    "without libvirt": replace(
        MADE,
        host=replace(HOST, libvirt="Nothing answers for qemu:///system: role nometal.ipi.host_prep starts it."),
        networks=[],
        nodes=nodes(power="unknown", console=""),
    ),
    "half made by a run that was killed": replace(
        ABSENT, registered=True, storage=STORAGE, networks=[NETWORK], run=Run(RUN, going=False)
    ),
    "while it is made": replace(ABSENT, registered=True, run=Run(RUN, going=True)),
    "made": MADE,
    "made, to be installed": replace(MADE, installs=True),
    "rehearsed": replace(MADE, rehearsal=REHEARSED),
    "rehearsal failed": replace(MADE, rehearsal=replace(REHEARSED, outcome="failed", failures=3)),
    "installing": replace(
        MADE,
        installs=True,
        nodes=[*(on(each) for each in nodes()[:3]), *nodes()[3:]],
        installation=RUNNING,
        run=Run(RUN, going=None),
        rehearsal=REHEARSED,
    ),
    "installation failed": replace(WITHOUT_CLUSTER, installation=FAILED),
    "installed": RAN,
    "installed, off after a reboot": replace(
        RAN, nodes=nodes(), cluster=Cluster("silent", "api.ha.lab.example.test:6443: No route to host")
    ),
    "installed, stopped": replace(RAN, nodes=nodes(stopped=True), cluster=None),
    "installed, its API is silent": replace(
        WITHOUT_CLUSTER, cluster=Cluster("silent", "api.ha.lab.example.test:6443: Connection refused")
    ),
    "installed, and no client to ask the cluster with": replace(
        WITHOUT_CLUSTER,
        installation=replace(INSTALLED, client=""),
        cluster=Cluster("not asked", "The host has neither oc nor kubectl.", vips=CLUSTER_WELL.vips),
    ),
    "installed, the cluster is not well": replace(
        RAN,
        nodes=[
            joined(nodes()[0], network_changed=True),
            joined(nodes()[1], ready=None, host_error="HTTP GET /redfish/v1/Systems returned code 401. Unauthorized"),
            joined(nodes()[2], ready=False, cordoned=True),
            joined(nodes()[3], host_error="Timeout reached while waiting for callback", host_state="provisioning"),
            joined(
                nodes()[4], machine_phase="Failed", machine_error="can't find created instance", node="", ready=None
            ),
            node("worker-2", 32),
        ],
        cluster=replace(
            CLUSTER_WELL,
            operators_failing=[Operator("console", "degraded", "RouteHealthDegraded: no answer")],
            requests_pending=4,
            vips=[Vip("API", "192.168.126.5", "control-plane-1", answers=True), Vip("ingress", "192.168.126.6")],
            certificates=[
                Certificate("serving the API", expired=True),
                Certificate("signer of the API server's client certificates for kubelets", "2026-11-30T10:00:00Z"),
            ],
        ),
    ),
    "installed, a node of the control plane is being replaced": replace(
        RAN,
        nodes=[*(joined(each) for each in nodes()[:2]), node("control-plane-2", 22), *map(joined, nodes()[3:])],
        replacing=["control-plane-2"],
    ),
    "installed, much is wrong": replace(
        WITHOUT_CLUSTER,
        storage=replace(STORAGE, free_bytes=2 * GIB),
        networks=[replace(NETWORK, missing_addresses=["192.168.126.1/24"], dnsmasq=False)],
        bmcs=replace(BMCS, faults=["status 503 for 10% of requests"]),
        nodes=[
            on(nodes()[0]),
            on(nodes()[1], bmc_error="503: busy"),
            replace(nodes()[2], power="paused"),
            nodes()[3],
            replace(nodes()[4], power="missing", console=""),
        ],
        checkpoints=[
            Checkpoint("fresh", "2026-11-19T11:02:03Z"),
            Checkpoint("before-upgrade", "2026-11-20T11:30:00Z", while_running=True),
        ],
        half_restored="fresh",
        unread=["default routes: not permitted"],
    ),
    "its services do not run": replace(
        MADE,
        networks=[replace(NETWORK, state="inactive", dnsmasq=None)],
        bmcs=replace(BMCS, state="silent", error="Nothing listens at 192.168.126.1:8000/tcp."),
        rehearsal=replace(REHEARSED, outcome="failed", failures=1, page=""),
    ),
}
