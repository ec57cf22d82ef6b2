"""The stand-in's API serves Debian's kubectl, of the oldest and the newest release that lab hosts have."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from support import kubectl, kubernetes_api, lab_host
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.kubernetes_api import KubernetesApi

HOSTS, MACHINE_SETS = "baremetalhosts.metal3.io", "machinesets.machine.openshift.io"
REQUESTS, BUDGETS = "certificatesigningrequests.certificates.k8s.io", "poddisruptionbudgets.policy"
NAMESPACE = "openshift-machine-api"
IN_NAMESPACE = ("-n", NAMESPACE)
NODE, NODE_GROUPS = "system:node:worker-0", ["system:nodes"]


@pytest.fixture(params=kubectl.SUITES)
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesApi]:
    with kubernetes_api.start(tmp_path, suite=request.param) as started:
        yield started


def host(name: str = "w0", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"online": True, "bootMACAddress": "52:54:00:00:00:01", **spec},
    }


def node(name: str = "worker-0", *, ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
        "status": {"conditions": conditions},
    }


def pod(name: str, owner: str = "", **metadata: Any) -> dict[str, Any]:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1", "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "app", "labels": {"app": "web"}, "ownerReferences": owners, **metadata},
        "spec": {"nodeName": "worker-0", "containers": [{"name": "web", "image": "web"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def machine_set(replicas: int = 2) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"set": "workers"}}}
    return {"metadata": {"name": "workers", "namespace": NAMESPACE}, "spec": spec}


def request() -> dict[str, Any]:
    spec = {"signerName": "kubernetes.io/kubelet-serving", "request": "eA==", "usages": ["server auth"]}
    return {"metadata": {"name": "csr-1"}, "spec": spec}


def started(api: KubernetesApi, *words: str) -> subprocess.Popen[str]:
    run = {**api.run, "capture_output": False}
    run.pop("capture_output")
    return subprocess.Popen(api.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **run)


def asked(api: KubernetesApi, path: str) -> tuple[int, bytes]:
    """Without a certificate."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.load_verify_locations(cadata=api.authority.certificate)
    with closing(http.client.HTTPSConnection(api.server.address, api.server.port, context=tls)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()


def wait_for_request(api: KubernetesApi, verb: str, kind: str, code: int = 200) -> None:
    def is_there() -> bool:
        return any((entry.verb, entry.kind, entry.code) == (verb, kind, code) for entry in api.server.audit.entries())

    wait_until(f"somebody asks to {verb} {kind}", is_there)


@pytest.mark.parametrize("suite", kubectl.SUITES)
def test_kubectl_runs_on_a_lab_host(suite: str) -> None:
    with lab_host.start(suite=suite, layer="bare") as host:
        kubectl.install(host)
        assert "Client Version" in host.run(["kubectl", "version", "--client"]).stdout


def test_discovery(api: KubernetesApi) -> None:
    listed = api.kubectl("api-resources").stdout
    assert "bmh,bmhost" in listed
    assert "poddisruptionbudgets" in listed
    version = json.loads(api.kubectl("version", "-o", "json").stdout)
    assert version["serverVersion"]["gitVersion"] == "v1.33.4"
    assert api.kubectl("get", "--raw", "/readyz").stdout == "ok"


def test_tables_have_the_columns_of_the_real_ones(api: KubernetesApi) -> None:
    status = {"operationalStatus": "OK", "provisioning": {"state": "provisioned"}}
    consumer: dict[str, Any] = {
        "consumerRef": {"name": "machine-0"},
        "bmc": {"address": "ipmi://h", "credentialsName": "s"},
    }
    api.store.create(HOSTS, {**host(**consumer), "status": status})
    api.store.create("nodes", node(ready=False))
    rows = [line.split() for line in api.kubectl("get", "bmh", "-A").stdout.splitlines()]
    assert rows[0] == ["NAMESPACE", "NAME", "STATE", "CONSUMER", "ONLINE", "ERROR", "AGE"]
    assert rows[1][:5] == [NAMESPACE, "w0", "provisioned", "machine-0", "true"]
    wide = [line.split() for line in api.kubectl("get", "bmh", "-o", "wide", *IN_NAMESPACE).stdout.splitlines()]
    assert wide[0] == ["NAME", "STATUS", "STATE", "CONSUMER", "BMC", "ONLINE", "ERROR", "AGE"]
    assert wide[1][4] == "ipmi://h"
    assert api.kubectl("get", "nodes").stdout.splitlines()[1].split()[:3] == ["worker-0", "NotReady", "worker"]


def test_lists_come_in_parts(api: KubernetesApi) -> None:
    for number in range(5):
        api.store.create("nodes", node(f"worker-{number}"))
    listed = api.kubectl("get", "nodes", "-o", "name", "--chunk-size=2").stdout.split()
    assert listed == [f"node/worker-{number}" for number in range(5)]
    lists = [entry for entry in api.server.audit.entries() if (entry.verb, entry.kind) == ("list", "nodes")]
    assert len(lists) == 3


def test_selectors(api: KubernetesApi) -> None:
    api.store.create("pods", pod("one"))
    api.store.create("pods", {**pod("two"), "spec": {"nodeName": "worker-1"}})
    on_node = api.kubectl("get", "pods", "-A", "-o", "name", "--field-selector=spec.nodeName=worker-1").stdout
    assert on_node == "pod/two\n"
    assert api.kubectl("get", "pods", "-A", "-o", "name", "-l", "app in (web),other!=x").stdout.split() == [
        "pod/one",
        "pod/two",
    ]
    assert api.kubectl("get", "pods", "-A", "-o", "name", "-l", "app!=web").stdout == ""


def test_get_goes_on_watching(api: KubernetesApi) -> None:
    api.store.create("nodes", node("worker-0"))
    with started(api, "get", "nodes", "-w", "--no-headers") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:2] == ["worker-0", "Ready"]
        api.store.create("nodes", node("worker-1", ready=False))
        assert watching.stdout.readline().split()[:2] == ["worker-1", "NotReady"]
        api.store.change("nodes", "worker-1", "", lambda item: {**item, "status": node()["status"]}, "status")
        assert watching.stdout.readline().split()[:2] == ["worker-1", "Ready"]
        watching.kill()


def test_wait_sees_a_condition_come(api: KubernetesApi) -> None:
    api.store.create("nodes", node(ready=False))
    with started(api, "wait", "--for=condition=Ready", "node/worker-0", "--timeout=10m") as waiting:
        wait_for_request(api, "watch", "nodes")
        api.store.change("nodes", "worker-0", "", lambda item: {**item, "status": node()["status"]}, "status")
        out, _ = waiting.communicate()
    assert (waiting.returncode, out) == (0, "node/worker-0 condition met\n")


def test_watches_by_hand(api: KubernetesApi) -> None:
    """What no kubectl here asks for."""
    api.store.create("nodes", node())
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    lines = api.kubectl("get", "--raw", f"/api/v1/nodes?{query}&timeoutSeconds=1").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    query = f"watch=true&labelSelector=a%3Db&resourceVersion={api.store.version}"
    for label in ("a=b", "a=c"):
        api.kubectl("label", "node", "worker-0", label, "--overwrite")
    lines = api.kubectl("get", "--raw", f"/api/v1/nodes?{query}&timeoutSeconds=1").stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["ADDED", "DELETED"]


def test_a_watch_from_too_long_ago_ends(api: KubernetesApi) -> None:
    api.store.create("nodes", node())
    api.store.load(api.store.dump())
    [line] = api.kubectl("get", "--raw", "/api/v1/nodes?watch=true&resourceVersion=1").stdout.splitlines()
    event = json.loads(line)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_create_and_apply(api: KubernetesApi) -> None:
    text = json.dumps(host())
    assert "created" in api.kubectl("create", "-f", "-", stdin=text).stdout
    again = api.kubectl("create", "-f", "-", stdin=text, check=False)
    assert "(AlreadyExists)" in again.stderr
    api.kubectl("delete", "bmh", "w0", *IN_NAMESPACE)
    assert "created" in api.kubectl("apply", "-f", "-", stdin=text).stdout
    assert "unchanged" in api.kubectl("apply", "-f", "-", stdin=text).stdout
    assert "configured" in api.kubectl("apply", "-f", "-", stdin=json.dumps(host(online=False))).stdout
    assert api.store.get(HOSTS, "w0", NAMESPACE)["spec"]["online"] is False


def test_apply_of_kinds_that_merge_lists(api: KubernetesApi) -> None:
    def typed(*names: str) -> str:
        containers = [{"name": name, "image": name} for name in names]
        metadata = {"name": "one", "namespace": "default"}
        return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}})

    api.kubectl("apply", "-f", "-", stdin=typed("a", "b"))
    api.store.change("pods", "one", "default", lambda item: item["spec"]["containers"].append({"name": "x"}))
    api.kubectl("apply", "-f", "-", stdin=typed("b", "c"))
    found = [container["name"] for container in api.store.get("pods", "one", "default")["spec"]["containers"]]
    assert sorted(found) == ["b", "c", "x"]


def test_server_side_apply(api: KubernetesApi) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    mine = ("--field-manager=nometal.ipi",)
    api.kubectl(*apply, *mine, stdin=json.dumps(host()))
    api.kubectl("patch", "bmh", "w0", *IN_NAMESPACE, "--type=merge", "-p", '{"spec":{"online":false}}')
    refused = api.kubectl(*apply, *mine, stdin=json.dumps(host()), check=False)
    assert refused.returncode != 0
    assert 'conflict with "kubectl-patch" using metal3.io/v1alpha1: .spec.online' in refused.stderr
    api.kubectl(*apply, *mine, "--force-conflicts", stdin=json.dumps(host()))
    made = api.store.get(HOSTS, "w0", NAMESPACE)
    assert made["spec"]["online"] is True
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["nometal.ipi"]


def test_unknown_keys(api: KubernetesApi, request: pytest.FixtureRequest) -> None:
    """Old clients know no strict validation, and are warned."""
    done = api.kubectl("create", "-f", "-", stdin=json.dumps(host(colour="red")), check=False)
    assert 'unknown field "spec.colour"' in done.stderr
    strict = "trixie" in request.node.name
    assert done.returncode == int(strict)
    assert [item["metadata"]["name"] for item in api.store.list(HOSTS)] == ([] if strict else ["w0"])
    assert all("colour" not in item["spec"] for item in api.store.list(HOSTS))


def test_admission_speaks_through(api: KubernetesApi) -> None:
    api.store.create(HOSTS, host())
    change = '{"spec":{"bootMACAddress":"52:54:00:00:00:02"}}'
    done = api.kubectl("patch", "bmh", "w0", *IN_NAMESPACE, "--type=merge", "-p", change, check=False)
    assert "bootMACAddress can not be changed" in done.stderr
    wrong = api.kubectl("patch", "bmh", "w0", *IN_NAMESPACE, "--type=merge", "-p", '{"spec":{"online":1}}', check=False)
    assert "spec.online in body must be of type boolean" in wrong.stderr


def test_patches(api: KubernetesApi) -> None:
    api.store.create(HOSTS, host())
    api.store.create("nodes", node())
    strategic = api.kubectl("patch", "bmh", "w0", *IN_NAMESPACE, "-p", '{"spec":{"online":false}}', check=False)
    assert strategic.returncode == 1
    operations = '[{"op":"replace","path":"/spec/online","value":false}]'
    api.kubectl("patch", "bmh", "w0", *IN_NAMESPACE, "--type=json", "-p", operations)
    assert api.store.get(HOSTS, "w0", NAMESPACE)["spec"]["online"] is False
    api.kubectl("patch", "node", "worker-0", "-p", '{"spec":{"unschedulable":true}}')
    assert api.store.get("nodes", "worker-0")["spec"] == {"unschedulable": True}


def test_annotate_and_label(api: KubernetesApi) -> None:
    api.store.create(HOSTS, host())
    api.kubectl("annotate", "bmh", "w0", *IN_NAMESPACE, "baremetalhost.metal3.io/paused=")
    api.kubectl("label", "bmh", "w0", *IN_NAMESPACE, "role=worker")
    made = api.store.get(HOSTS, "w0", NAMESPACE)["metadata"]
    assert (made["annotations"], made["labels"]) == ({"baremetalhost.metal3.io/paused": ""}, {"role": "worker"})
    api.kubectl("annotate", "bmh", "w0", *IN_NAMESPACE, "baremetalhost.metal3.io/paused-")
    assert (
        "annotations" not in api.store.get(HOSTS, "w0", NAMESPACE)["metadata"]
        or not (api.store.get(HOSTS, "w0", NAMESPACE)["metadata"]["annotations"])
    )


def test_scale(api: KubernetesApi) -> None:
    api.store.create(MACHINE_SETS, machine_set())
    api.kubectl("scale", "machinesets.machine.openshift.io/workers", *IN_NAMESPACE, "--replicas=4")
    assert api.store.get(MACHINE_SETS, "workers", NAMESPACE)["spec"]["replicas"] == 4
    refused = api.kubectl(
        *("scale", "machinesets.machine.openshift.io/workers", *IN_NAMESPACE),
        *("--current-replicas=2", "--replicas=5"),
        check=False,
    )
    assert "Expected replicas to be 2, was 4" in refused.stderr
    assert {kind for _, kind, _ in api.server.audit.changes()} == {f"{MACHINE_SETS}/scale"}


def test_a_stale_replacement_is_a_conflict(api: KubernetesApi) -> None:
    old = api.store.create(HOSTS, host())
    api.store.change(HOSTS, "w0", NAMESPACE, lambda item: item["spec"].update(online=False))
    done = api.kubectl("replace", "-f", "-", stdin=json.dumps(old), check=False)
    assert "(Conflict)" in done.stderr
    assert "the object has been modified" in done.stderr


def test_dry_runs(api: KubernetesApi) -> None:
    api.store.create(HOSTS, host())
    version = api.store.version
    api.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(host("w1")))
    api.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(host(architecture="x86_64")))
    api.kubectl("delete", "bmh", "w0", *IN_NAMESPACE, "--dry-run=server")
    assert api.store.version == version


def test_deletion_waits_for_the_last_finalizer(api: KubernetesApi) -> None:
    metadata = {**host()["metadata"], "finalizers": [HOSTS]}
    api.store.create(HOSTS, {**host(), "metadata": metadata})
    with started(api, "delete", "bmh", "w0", *IN_NAMESPACE) as deleting:
        wait_for_request(api, "watch", HOSTS)
        assert api.store.get(HOSTS, "w0", NAMESPACE)["metadata"]["deletionTimestamp"]
        api.store.change(HOSTS, "w0", NAMESPACE, lambda item: item["metadata"].update(finalizers=[]))
        deleting.communicate()
    assert deleting.returncode == 0
    assert api.store.list(HOSTS) == []


def test_deletion_has_preconditions(api: KubernetesApi) -> None:
    api.store.create("nodes", node())
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "another"}}
    done = api.kubectl("delete", "--raw", "/api/v1/nodes/worker-0", "-f", "-", stdin=json.dumps(options), check=False)
    assert "the UID in the precondition (another) does not match" in done.stderr
    assert len(api.store.list("nodes")) == 1


def test_what_breaks_the_server_is_answered(api: KubernetesApi) -> None:
    done = api.kubectl("get", "--raw", "/api/v1/nodes?limit=many", check=False)
    assert "(InternalError)" in done.stderr
    assert "invalid literal" in done.stderr


def test_drain_waits_for_a_disruption_budget(api: KubernetesApi) -> None:
    api.store.create("nodes", node())
    api.store.create("daemonsets.apps", {"metadata": {"name": "web", "namespace": "app"}})
    for item in (pod("one", "ReplicaSet"), pod("daemon", "DaemonSet")):
        api.store.create("pods", item)
    api.store.create("pods", pod("mirror", annotations={"kubernetes.io/config.mirror": "x"}, labels={}))
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    api.store.create(BUDGETS, {"metadata": {"name": "web", "namespace": "app"}, "spec": spec})
    with started(api, "drain", "worker-0", "--ignore-daemonsets", "--force", "--timeout=10m") as draining:
        wait_for_request(api, "create", "pods/eviction", 429)
        assert api.store.get("nodes", "worker-0")["spec"]["unschedulable"] is True
        api.store.delete(BUDGETS, "web", "app")
        out, _ = draining.communicate()
    assert draining.returncode == 0
    assert "would violate the pod's disruption budget" in out
    assert [item["metadata"]["name"] for item in api.store.list("pods")] == ["daemon", "mirror"]
    api.kubectl("uncordon", "worker-0")
    assert not api.store.get("nodes", "worker-0")["spec"].get("unschedulable")


def test_certificates_are_approved(api: KubernetesApi) -> None:
    api.store.create(REQUESTS, request())
    assert "Pending" in api.kubectl("get", "csr").stdout
    api.kubectl("certificate", "approve", "csr-1")
    [condition] = api.store.get(REQUESTS, "csr-1")["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Approved", "True", "KubectlApprove")
    assert ("update", f"{REQUESTS}/approval", "csr-1") in api.server.audit.changes()


def test_nodes_may_do_little(api: KubernetesApi) -> None:
    api.store.create("nodes", node())
    own = api.kubeconfig_of(NODE, NODE_GROUPS)
    assert api.kubectl("auth", "can-i", "delete", "nodes").stdout.startswith("yes")
    may = api.kubectl("auth", "can-i", "delete", "nodes", check=False, kubeconfig=own)
    assert may.stdout.startswith("no")
    assert api.kubectl("get", "nodes", "-o", "name", kubeconfig=own).stdout == "node/worker-0\n"
    done = api.kubectl("delete", "node", "worker-0", check=False, kubeconfig=own)
    assert f'nodes "worker-0" is forbidden: User "{NODE}" cannot delete resource "nodes"' in done.stderr
    done = api.kubectl("get", "secrets", "-A", check=False, kubeconfig=own)
    assert "secrets is forbidden" in done.stderr


def test_requests_of_nodes_bear_their_names(api: KubernetesApi) -> None:
    own = api.kubeconfig_of(NODE, NODE_GROUPS)
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", **request()}
    api.kubectl("create", "-f", "-", stdin=json.dumps(body), kubeconfig=own)
    spec = api.store.get(REQUESTS, "csr-1")["spec"]
    assert (spec["username"], spec["groups"]) == (NODE, ["system:nodes", "system:authenticated"])


def test_who_shows_no_certificate_is_nobody(api: KubernetesApi) -> None:
    assert asked(api, "/api/v1/nodes")[0] == 401
    assert asked(api, "/readyz") == (200, b"ok")


def test_the_audit_log_has_no_secrets(api: KubernetesApi) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bmc"}, "stringData": {"password": "planted"}}
    api.kubectl("apply", "--validate=false", "-f", "-", stdin=json.dumps(secret))
    assert api.store.get("secrets", "bmc", "default")["data"] == {"password": "cGxhbnRlZA=="}
    assert "planted" not in str(api.server.audit.entries())
    assert ("create", "secrets", "") in api.server.audit.changes()


def test_the_server_can_be_out_of_reach(api: KubernetesApi) -> None:
    api.store.create("nodes", node())
    get = ("get", "--raw", "/api/v1/nodes")
    api.server.switches.unavailable = True
    assert "currently unable to handle the request" in api.kubectl(*get, check=False).stderr
    api.server.switches.unavailable = False
    api.server.switches.refuse = True
    assert api.kubectl(*get, check=False).returncode == 1
    api.server.switches.refuse = False
    api.server.stop()
    assert "refused" in api.kubectl(*get, check=False).stderr
    api.server.start()
    assert json.loads(api.kubectl(*get).stdout)["items"][0]["metadata"]["name"] == "worker-0"
