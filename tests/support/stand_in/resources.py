"""The few resources that are read of a cluster."""

from __future__ import annotations

from typing import Any

from support.stand_in.host import PROVISIONED
from support.stand_in.world import LAST, OPERATORS_OF_ALL, World

Object = dict[str, Any]
ROLES = {"master": ["control-plane", "master"], "arbiter": ["arbiter"], "worker": ["worker"]}
PATHS = {
    "configmaps": "/api/v1/namespaces/kube-system/configmaps",
    "nodes": "/api/v1/nodes",
    "clusterversions": "/apis/config.openshift.io/v1/clusterversions",
    "clusteroperators": "/apis/config.openshift.io/v1/clusteroperators",
    "etcds": "/apis/operator.openshift.io/v1/etcds",
    "baremetalhosts": "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts",
    "routes": "/apis/route.openshift.io/v1/namespaces/openshift-console/routes",
}
KINDS = {
    "configmaps": "ConfigMap",
    "nodes": "Node",
    "clusterversions": "ClusterVersion",
    "clusteroperators": "ClusterOperator",
    "etcds": "Etcd",
    "baremetalhosts": "BareMetalHost",
    "routes": "Route",
}


def answer(world: World, path: str) -> Object | None:
    """What the API server says; None where there is nothing."""
    if path == "/version":
        return {"gitVersion": f"v{world.kubernetes}"}
    if path in ("/readyz", "/healthz", "/livez"):
        return {"status": "ok"}
    for resource, prefix in PATHS.items():
        if path == prefix:
            return {
                "apiVersion": "v1",
                "kind": "List",
                "metadata": {"resourceVersion": ""},
                "items": _all(world, resource),
            }
        if path.startswith(f"{prefix}/"):
            named = (item for item in _all(world, resource) if f"{prefix}/{item['metadata']['name']}" == path)
            return next(named, None)
    return None


def _all(world: World, resource: str) -> list[Object]:
    found = {
        "configmaps": _bootstrap,
        "nodes": _nodes,
        "clusterversions": _version,
        "clusteroperators": _operators,
        "etcds": _etcd,
        "baremetalhosts": _hosts,
        "routes": _routes,
    }[resource](world)
    group = PATHS[resource].split("/")
    version = "v1" if group[1] == "api" else "/".join(group[2:4])
    return [{"apiVersion": version, "kind": KINDS[resource], **item} for item in found]


def _bootstrap(world: World) -> list[Object]:
    if not world.bootstrapped.is_set():
        return []
    return [{"metadata": {"name": "bootstrap", "namespace": "kube-system"}, "data": {"status": "complete"}}]


def _etcd(world: World) -> list[Object]:
    removed = _condition("EtcdBootstrapMemberRemoved", met=world.etcd_member_removed.is_set())
    return [{"metadata": {"name": "cluster"}, "status": {"conditions": [removed]}}]


def _hosts(world: World) -> list[Object]:
    found = []
    for name, host in world.hosts.items():
        kind, message = host.error or ("", "")
        on = host.state == PROVISIONED
        status = {"provisioning": {"state": host.state}, "errorType": kind, "errorMessage": message, "poweredOn": on}
        spec = {"bootMACAddress": host.told["bootMACAddress"], "online": True}
        found.append({"metadata": {"name": name, "namespace": "openshift-machine-api"}, "spec": spec, "status": status})
    return found


def _nodes(world: World) -> list[Object]:
    found = []
    for role, labels in ROLES.items():
        for told in world.lab.hosts(role):
            if world.bootstrapped.is_set() and world.hosts[told["name"]].state == PROVISIONED:
                marks = {f"node-role.kubernetes.io/{label}": "" for label in labels}
                status = {"conditions": [_condition("Ready")], "nodeInfo": {"kubeletVersion": f"v{world.kubernetes}"}}
                found.append({"metadata": {"name": told["name"], "labels": marks}, "status": status})
    return found


def _operators(world: World) -> list[Object]:
    return [_operator(name, world) for name in OPERATORS_OF_ALL] if world.bootstrapped.is_set() else []


def _operator(name: str, world: World) -> Object:
    ready = name in world.ready
    conditions = [
        _condition("Available", met=ready, message="" if ready else f"{name} has no replica that is available"),
        _condition("Progressing", met=not ready or (name in LAST and not world.stable)),
        _condition("Degraded", met=False),
    ]
    versions = [{"name": "operator", "version": world.lab.version}] if ready else []
    return {"metadata": {"name": name}, "status": {"conditions": conditions, "versions": versions}}


def _version(world: World) -> list[Object]:
    done, of = world.share
    waiting = [name for name in OPERATORS_OF_ALL if name not in world.ready][-4:]
    complete = not waiting
    working = f"Working towards {world.lab.version}: {done} of {of} done ({100 * done // of}% complete)"
    working += f", waiting on {', '.join(waiting)}" if waiting else ""
    conditions = [
        _condition("Available", met=complete, message=f"Done applying {world.lab.version}" if complete else ""),
        _condition(
            "Progressing", met=not complete, message=f"Cluster version is {world.lab.version}" if complete else working
        ),
        _condition("Failing", met=False),
    ]
    history = [{"state": "Completed" if complete else "Partial", "version": world.lab.version}]
    status = {"conditions": conditions, "history": history, "desired": {"version": world.lab.version}}
    return [{"metadata": {"name": "version"}, "status": status}]


def _routes(world: World) -> list[Object]:
    if not world.console:
        return []
    host = world.lab.console.partition("://")[2]
    return [{"metadata": {"name": "console", "namespace": "openshift-console"}, "spec": {"host": host}}]


def _condition(kind: str, *, met: bool = True, message: str = "") -> Object:
    return {"type": kind, "status": str(met), "message": message}
