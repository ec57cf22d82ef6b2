"""The objects of the stand-in's API server behave as a real one's."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.stand_in.kubernetes import errors, eviction, kinds, selectors
from support.stand_in.kubernetes.store import Conflict, Event, Exists, Expired, Invalid, NotFound, Store

HOSTS, MACHINE_SETS, NODES, PODS, SECRETS = (
    *("baremetalhosts.metal3.io", "machinesets.machine.openshift.io", "nodes", "pods", "secrets"),
)
BUDGETS = "poddisruptionbudgets.policy"
NAMESPACE = "openshift-machine-api"
MAC = "52:54:00:00:00:01"


@pytest.fixture
def store() -> Store:
    return Store(clock=lambda: 0)


def host(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"online": True, "bootMACAddress": MAC, **spec},
    }


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "one", "labels": labels}}


def test_what_is_created_is_there(store: Store) -> None:
    made = store.create(HOSTS, host())
    assert made["apiVersion"] == "metal3.io/v1alpha1"
    assert made["kind"] == "BareMetalHost"
    assert made["metadata"]["creationTimestamp"] == "1970-01-01T00:00:00Z"
    assert made["metadata"]["generation"] == 1
    assert store.get(HOSTS, "one", NAMESPACE) == made
    assert store.list(HOSTS) == store.list(HOSTS, NAMESPACE) == [made]
    assert store.list(HOSTS, "default") == []


def test_what_goes_out_is_a_copy(store: Store) -> None:
    store.create(NODES, labelled(a="1"))["metadata"]["labels"]["a"] = "2"
    store.get(NODES, "one")["metadata"]["labels"]["a"] = "2"
    store.list(NODES)[0]["metadata"]["labels"]["a"] = "2"
    store.events([NODES], 0)[0][0].object["metadata"]["labels"]["a"] = "2"
    assert store.get(NODES, "one")["metadata"]["labels"] == {"a": "1"}
    assert store.events([NODES], 0)[0][0].object["metadata"]["labels"] == {"a": "1"}


def test_names_are_generated(store: Store) -> None:
    names = {store.create(NODES, {"metadata": {"generateName": "node-"}})["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) == len("node-12345") for name in names)


def test_what_is_refused(store: Store) -> None:
    store.create(HOSTS, host())
    with pytest.raises(Exists, match=r'baremetalhosts.metal3.io "one" already exists'):
        store.create(HOSTS, host())
    with pytest.raises(NotFound, match='nodes "two" not found'):
        store.get(NODES, "two")
    with pytest.raises(NotFound):
        store.update(NODES, {"metadata": {"name": "two"}})
    with pytest.raises(Invalid, match=r"metadata\.namespace"):
        store.create(HOSTS, {"metadata": {"name": "two"}, "spec": {"online": True}})
    with pytest.raises(Invalid, match=r"metadata\.name"):
        store.create(NODES, {})
    with pytest.raises(ValueError, match="unknown kind 'machines'"):
        store.list("machines")


def test_an_update_of_an_old_version_is_a_conflict(store: Store) -> None:
    old = store.create(NODES, labelled(a="1"))
    new = store.update(NODES, {**old, "spec": {"unschedulable": True}})
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    with pytest.raises(Conflict, match="the object has been modified"):
        store.update(NODES, old)
    assert store.update(NODES, labelled(a="2"))["metadata"]["labels"] == {"a": "2"}


def test_an_update_that_changes_nothing_makes_no_event(store: Store) -> None:
    made = store.create(NODES, labelled(a="1"))
    assert store.update(NODES, made) == made
    assert store.version == int(made["metadata"]["resourceVersion"])


def test_the_generation_counts_what_is_wanted(store: Store) -> None:
    made = store.create(HOSTS, host())
    made = store.update(HOSTS, {**made, "status": {"poweredOn": True}}, "status")
    made["metadata"]["labels"] = {"a": "1"}
    made = store.update(HOSTS, made)
    assert made["metadata"]["generation"] == 1
    made["spec"]["online"] = False
    assert store.update(HOSTS, made)["metadata"]["generation"] == 2


def test_status_and_the_rest_are_updated_apart(store: Store) -> None:
    made = store.create(HOSTS, {**host(), "status": {"poweredOn": True}})
    changed = {**made, "spec": {**made["spec"], "online": False}, "status": {"poweredOn": False}}
    assert store.update(HOSTS, changed)["status"] == {"poweredOn": True}
    changed = {**store.get(HOSTS, "one", NAMESPACE), "spec": {}, "status": {"poweredOn": False}}
    new = store.update(HOSTS, changed, "status")
    assert (new["spec"]["online"], new["status"]) == (False, {"poweredOn": False})


def test_scale_changes_replicas_alone(store: Store) -> None:
    body = {"metadata": {"name": "workers", "namespace": NAMESPACE}, "spec": {"replicas": 2, "template": {}}}
    store.create(MACHINE_SETS, body)
    scale = {"metadata": {"name": "workers", "namespace": NAMESPACE}, "spec": {"replicas": 4}}
    assert store.update(MACHINE_SETS, scale, "scale")["spec"] == {"replicas": 4, "template": {}}


def test_change_reads_again_when_others_were_faster(store: Store) -> None:
    store.create(NODES, labelled(count="0"))
    readers = threading.Barrier(2)

    def add(node: dict[str, Any]) -> None:
        if not readers.broken:
            readers.wait()
            readers.abort()
        node["metadata"]["labels"]["count"] = str(int(node["metadata"]["labels"]["count"]) + 1)

    def one() -> None:
        try:
            store.change(NODES, "one", "", add)
        except threading.BrokenBarrierError:
            store.change(NODES, "one", "", add)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(NODES, "one")["metadata"]["labels"] == {"count": "2"}


def test_whatever_goes_is_told_of(store: Store) -> None:
    seen = []
    store.removed = lambda *object_: seen.append(object_)
    owner = store.create(HOSTS, host())["metadata"]
    owned = {"ownerReferences": [{"kind": "BareMetalHost", "name": "one", "uid": owner["uid"]}]}
    store.create(SECRETS, {"metadata": {"name": "of-one", "namespace": NAMESPACE, **owned}})
    store.delete(HOSTS, "one", NAMESPACE)
    assert seen == [(HOSTS, NAMESPACE, "one"), (SECRETS, NAMESPACE, "of-one")]


def test_deletion_waits_for_finalizers(store: Store) -> None:
    made = store.create(HOSTS, {**host(), "metadata": {**host()["metadata"], "finalizers": ["a", "b"]}})
    marked = store.delete(HOSTS, "one", NAMESPACE)
    assert marked["metadata"]["deletionTimestamp"] == "1970-01-01T00:00:00Z"
    assert store.delete(HOSTS, "one", NAMESPACE) == marked == store.get(HOSTS, "one", NAMESPACE)
    marked["metadata"]["finalizers"].remove("a")
    marked = store.update(HOSTS, marked)
    marked["metadata"]["finalizers"] = []
    store.update(HOSTS, marked)
    with pytest.raises(NotFound):
        store.get(HOSTS, "one", NAMESPACE)
    seen = [event.type for event in store.events([HOSTS], int(made["metadata"]["resourceVersion"]))[0]]
    assert seen == ["MODIFIED", "MODIFIED", "DELETED"]


def test_deletion_has_preconditions(store: Store) -> None:
    made = store.create(NODES, labelled())["metadata"]
    with pytest.raises(Conflict, match="UID in the precondition"):
        store.delete(NODES, "one", uid="another")
    with pytest.raises(Conflict, match="ResourceVersion in the precondition"):
        store.delete(NODES, "one", version="12345")
    store.delete(NODES, "one", uid=made["uid"], version=made["resourceVersion"])
    assert store.list(NODES) == []


def test_what_an_object_owned_goes_with_the_last_owner(store: Store) -> None:
    owners = [store.create(NODES, {"metadata": {"name": name}})["metadata"]["uid"] for name in ("one", "two")]
    references = [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": uid} for uid in owners]
    metadata = {"name": "bmc", "namespace": NAMESPACE, "ownerReferences": references}
    store.create(SECRETS, {"metadata": metadata})
    store.delete(NODES, "one")
    assert len(store.list(SECRETS)) == 1
    store.delete(NODES, "two")
    assert store.list(SECRETS) == []


def test_a_dry_run_changes_nothing(store: Store) -> None:
    assert store.create(NODES, labelled(), dry=True)["metadata"]["uid"]
    assert store.list(NODES) == []
    made = store.create(NODES, labelled())
    assert store.update(NODES, labelled(a="1"), dry=True)["metadata"]["labels"] == {"a": "1"}
    assert store.apply(NODES, labelled(a="1"), "me", dry=True)["metadata"]["labels"] == {"a": "1"}
    store.delete(NODES, "one", dry=True)
    assert store.get(NODES, "one") == made


def test_watches_see_what_happens(store: Store) -> None:
    start = store.version
    store.create(NODES, labelled())
    store.create(HOSTS, host())
    store.update(NODES, labelled(a="1"))
    store.delete(NODES, "one")
    seen = [(event.type, event.kind) for event in store.watch([NODES], start, seconds=0.01)]
    assert seen == [("ADDED", NODES), ("MODIFIED", NODES), ("DELETED", NODES)]
    found, version = store.events([HOSTS, NODES], start + 3)
    assert [event.type for event in found] == ["DELETED"]
    assert found[0].version == version == store.version


def test_a_watch_waits_for_what_comes_and_ends_with_the_store(store: Store) -> None:
    seen: list[Event] = []
    watcher = threading.Thread(target=lambda: seen.extend(store.watch([NODES], store.version)))
    start = store.version
    watcher.start()
    store.create(HOSTS, host())
    assert store.wait(60, start)
    store.close()
    watcher.join()
    assert seen == []


def test_who_comes_too_late_has_to_list_again() -> None:
    store = Store(remembered=2)
    for name in ("one", "two", "three"):
        store.create(NODES, {"metadata": {"name": name}})
    with pytest.raises(Expired, match="too old resource version: 0"):
        store.events([NODES], 0)
    assert [event.object["metadata"]["name"] for event in store.events([NODES], 1)[0]] == ["two", "three"]


def test_a_store_goes_on_from_what_was_dumped(store: Store) -> None:
    made = store.create(HOSTS, host())
    other = Store()
    other.load(store.dump())
    assert other.list(HOSTS) == [made]
    assert int(other.create(NODES, labelled())["metadata"]["resourceVersion"]) == store.version + 1
    with pytest.raises(Expired):
        other.events([HOSTS], 0)


def test_apply_creates_changes_and_removes_its_own(store: Store) -> None:
    store.apply(NODES, labelled(a="1", b="1"), "me")
    store.apply(NODES, labelled(c="1"), "you")
    made = store.apply(NODES, labelled(a="2"), "me")
    assert made["metadata"]["labels"] == {"a": "2", "c": "1"}
    assert [(entry["manager"], entry["operation"]) for entry in made["metadata"]["managedFields"]] == [
        ("me", "Apply"),
        ("you", "Apply"),
    ]
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:metadata": {"f:labels": {"f:a": {}}}}


def test_apply_of_the_same_changes_nothing(store: Store) -> None:
    made = store.apply(NODES, labelled(a="1"), "me")
    assert store.apply(NODES, labelled(a="1"), "me") == made


def test_fields_of_others_are_a_conflict_until_forced(store: Store) -> None:
    made = store.create(HOSTS, host(), "installer")
    store.update(HOSTS, {**made, "spec": {**made["spec"], "online": False}}, manager="kubectl-edit")
    with pytest.raises(Conflict) as caught:
        store.apply(HOSTS, host(architecture="x86_64"), "me")
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl-edit" using metal3.io/v1alpha1: .spec.online'
    )
    assert caught.value.details["causes"][0]["reason"] == "FieldManagerConflict"
    forced = store.apply(HOSTS, host(architecture="x86_64"), "me", force=True)
    assert forced["spec"]["online"] is True
    managers = {entry["manager"]: entry["fieldsV1"] for entry in forced["metadata"]["managedFields"]}
    assert set(managers) == {"installer", "me"}
    assert managers["me"]["f:spec"]["f:online"] == {}


def test_the_same_value_is_managed_together(store: Store) -> None:
    store.apply(NODES, labelled(a="1"), "one")
    store.apply(NODES, labelled(a="1"), "two")
    assert store.apply(NODES, labelled(b="1"), "one")["metadata"]["labels"] == {"a": "1", "b": "1"}
    assert store.apply(NODES, labelled(b="1"), "two")["metadata"]["labels"] == {"b": "1"}


def test_lists_with_keys_are_merged(store: Store) -> None:
    def hooks(*names: str) -> dict[str, Any]:
        found = [{"name": name, "owner": "x"} for name in names]
        metadata = {"name": "m", "namespace": NAMESPACE, "finalizers": list(names)}
        return {"metadata": metadata, "spec": {"lifecycleHooks": {"preDrain": found}}}

    machines = "machines.machine.openshift.io"
    store.apply(machines, hooks("a", "b"), "one")
    made = store.apply(machines, hooks("c"), "two")
    assert [hook["name"] for hook in made["spec"]["lifecycleHooks"]["preDrain"]] == ["a", "b", "c"]
    made = store.apply(machines, hooks("b"), "one")
    assert made["spec"]["lifecycleHooks"]["preDrain"] == [{"name": name, "owner": "x"} for name in ("b", "c")]
    assert made["metadata"]["finalizers"] == ["b", "c"]


def test_apply_leaves_the_status(store: Store) -> None:
    store.create(HOSTS, {**host(), "status": {"poweredOn": True}})
    made = store.apply(HOSTS, {**host(), "status": {"poweredOn": False}}, "stand-in")
    assert made["status"] == {"poweredOn": True}
    status = {"metadata": host()["metadata"], "status": {"poweredOn": False}}
    assert store.apply(HOSTS, status, "me", force=True, subresource="status")["status"] == {"poweredOn": False}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"online": "yes"}, "spec.online in body must be of type boolean"),
        ({"bootMode": "bios"}, 'spec.bootMode: Unsupported value: "bios"'),
        ({"bootMACAddress": "5254"}, "spec.bootMACAddress in body should match"),
        ({"bmc": {"address": "redfish://h/1"}}, "spec.bmc.credentialsName: Required value"),
    ],
)
def test_hosts_have_a_schema(store: Store, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        store.create(HOSTS, host(**spec))
    assert message in str(caught.value)


def test_unknown_keys_of_hosts_are_not_stored(store: Store) -> None:
    bmc = {"address": "redfish://h/1", "credentialsName": "s"}
    made = store.create(HOSTS, host(bmc={**bmc, "username": "admin"}, colour="red"))
    assert made["spec"] == {"online": True, "bootMACAddress": MAC, "bmc": bmc}


@pytest.mark.parametrize(
    ("device", "accepted"),
    [("/dev/vda", True), ("/dev/disk/by-path/pci-0", True), ("/dev/disk/by-id/x", False), ("vda", False)],
)
def test_disks_of_hosts_are_named_by_two_forms(store: Store, device: str, accepted: bool) -> None:
    hints = {"deviceName": device}
    if accepted:
        store.create(HOSTS, host(rootDeviceHints=hints))
    else:
        with pytest.raises(errors.Forbidden, match="device name of root device hint"):
            store.create(HOSTS, host(rootDeviceHints=hints))


@pytest.mark.parametrize(
    ("status", "accepted"),
    [
        ({"provisioning": {"state": "registering"}}, True),
        ({"provisioning": {"state": "provisioned"}, "operationalStatus": "detached"}, True),
        ({"provisioning": {"state": "provisioned"}, "operationalStatus": "OK"}, False),
    ],
)
def test_the_address_of_a_bmc_stays(store: Store, status: dict[str, Any], accepted: bool) -> None:
    bmc = {"address": "redfish://h/1", "credentialsName": "s"}
    made = store.create(HOSTS, {**host(bmc=bmc), "status": status})
    made["spec"]["bmc"]["address"] = "redfish://h/2"
    if accepted:
        assert store.update(HOSTS, made)["spec"]["bmc"]["address"] == "redfish://h/2"
    else:
        with pytest.raises(errors.Forbidden, match="BMC address can not be changed"):
            store.update(HOSTS, made)


def test_the_boot_mac_of_a_host_stays(store: Store) -> None:
    made = store.create(HOSTS, host())
    made["spec"]["bootMACAddress"] = "52:54:00:00:00:02"
    with pytest.raises(errors.Forbidden, match="bootMACAddress can not be changed"):
        store.update(HOSTS, made)


def pod(name: str, *, ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"name": name, "namespace": "app", "labels": {"app": "web"}},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("budget", "ready", "allowed"),
    [
        ({"minAvailable": 1}, 2, 1),
        ({"minAvailable": 2}, 2, 0),
        ({"minAvailable": "50%"}, 3, 1),
        ({"maxUnavailable": 1}, 2, 0),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "100%"}, 1, 1),
    ],
)
def test_budgets_allow_evictions(store: Store, budget: dict[str, Any], ready: int, allowed: int) -> None:
    for number in range(3):
        store.create(PODS, pod(f"web-{number}", ready=number < ready))
    spec = {**budget, "selector": {"matchLabels": {"app": "web"}}}
    made = store.create(BUDGETS, {"metadata": {"name": "web", "namespace": "app"}, "spec": spec})
    assert eviction.status(store, made)["disruptionsAllowed"] == allowed
    if allowed:
        eviction.evict(store, "web-0", "app")
        assert len(store.list(PODS)) == 2
    else:
        with pytest.raises(errors.TooManyRequests, match="would violate the pod's disruption budget") as caught:
            eviction.evict(store, "web-0", "app")
        assert caught.value.details["causes"][0]["reason"] == "DisruptionBudget"


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("a=1", True),
        ("a==1,b", True),
        ("a!=1", False),
        ("c!=1,!c", True),
        ("a in (1, 2),b notin (3)", True),
        ("b notin (2,3)", False),
    ],
)
def test_label_selectors(selector: str, found: bool) -> None:
    assert selectors.by_labels(selector, labelled(a="1", b="2")) is found


@pytest.mark.parametrize(
    ("selector", "found"),
    [("metadata.name=one", True), ("metadata.name!=one", False), ("spec.unschedulable=true,metadata.name=one", True)],
)
def test_field_selectors(selector: str, found: bool) -> None:
    assert selectors.by_fields(selector, {**labelled(), "spec": {"unschedulable": True}}) is found


def test_servers_select_by_few_fields() -> None:
    selectors.check_fields(kinds.of(PODS), "spec.nodeName=a,metadata.namespace!=b")
    with pytest.raises(errors.BadRequest, match=r"field label not supported: spec\.online"):
        selectors.check_fields(kinds.of(HOSTS), "spec.online=true")


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "Upper"},
        {"name": "under_score"},
        {"name": "a" * 254},
        {"labels": {"a": "b c"}},
        {"labels": {"a": "b" * 64}},
        {"labels": {"a/b/c": "d"}},
        {"labels": {"a": True}},
        {"annotations": {"a": 1}},
        {"annotations": {"a b": "c"}},
    ],
)
def test_names_and_labels_have_forms(store: Store, metadata: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="metadata"):
        store.create(NODES, {"metadata": {"name": "one", **metadata}})
    assert store.list(NODES) == []


def test_kinds_have_names_of_their_own() -> None:
    assert len(kinds.BY_NAME) == len(kinds.KINDS)
