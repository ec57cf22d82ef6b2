"""The kinds of objects that the API server has."""

from __future__ import annotations

from dataclasses import dataclass

STATUS, SCALE, EVICTION, APPROVAL = "status", "scale", "eviction", "approval"


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = (STATUS,)
    custom: bool = False
    """Defined by a CustomResourceDefinition, so without strategic merge patches."""

    @property
    def name(self) -> str:
        """The full plural name, such as baremetalhosts.metal3.io."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """Of its group and version."""
        return f"/apis/{self.group_version}" if self.group else f"/api/{self.version}"


def _core(
    kind: str, plural: str, short: str = "", *, namespaced: bool = True, subresources: tuple[str, ...] = ()
) -> Kind:
    return Kind("", "v1", kind, plural, tuple(short.split()), namespaced, subresources)


def _config(kind: str, plural: str, short: str = "") -> Kind:
    return Kind("config.openshift.io", "v1", kind, plural, tuple(short.split()), namespaced=False, custom=True)


def _metal3(kind: str, plural: str, short: str = "", *, namespaced: bool = True) -> Kind:
    return Kind("metal3.io", "v1alpha1", kind, plural, tuple(short.split()), namespaced, custom=True)


def _apps(kind: str, plural: str, short: str, *subresources: str) -> Kind:
    return Kind("apps", "v1", kind, plural, (short,), subresources=(STATUS, *subresources))


KINDS = (
    _core("Namespace", "namespaces", "ns", namespaced=False, subresources=(STATUS,)),
    _core("Node", "nodes", "no", namespaced=False, subresources=(STATUS,)),
    _core("Pod", "pods", "po", subresources=(STATUS, EVICTION)),
    _core("Secret", "secrets"),
    _core("ConfigMap", "configmaps", "cm"),
    _core("Service", "services", "svc", subresources=(STATUS,)),
    _core("ServiceAccount", "serviceaccounts", "sa"),
    _core("Event", "events", "ev"),
    _apps("DaemonSet", "daemonsets", "ds"),
    _apps("Deployment", "deployments", "deploy", SCALE),
    _apps("ReplicaSet", "replicasets", "rs", SCALE),
    _apps("StatefulSet", "statefulsets", "sts", SCALE),
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", ("pdb",)),
    Kind(
        *("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", ("csr",)),
        namespaced=False,
        subresources=(STATUS, APPROVAL),
    ),
    Kind("coordination.k8s.io", "v1", "Lease", "leases", subresources=()),
    _metal3("BareMetalHost", "baremetalhosts", "bmh bmhost"),
    _metal3("Provisioning", "provisionings", namespaced=False),
    _metal3("PreprovisioningImage", "preprovisioningimages", "ppimg"),
    _metal3("HostFirmwareSettings", "hostfirmwaresettings", "hfs"),
    Kind("machine.openshift.io", "v1beta1", "Machine", "machines", custom=True),
    Kind("machine.openshift.io", "v1beta1", "MachineSet", "machinesets", (), subresources=(STATUS, SCALE), custom=True),
    _config("ClusterVersion", "clusterversions"),
    _config("ClusterOperator", "clusteroperators", "co"),
    _config("Infrastructure", "infrastructures"),
    Kind("operator.openshift.io", "v1", "Etcd", "etcds", namespaced=False, custom=True),
    Kind("route.openshift.io", "v1", "Route", "routes", custom=True),
    Kind(
        *("machineconfiguration.openshift.io", "v1", "MachineConfigPool", "machineconfigpools", ("mcp",)),
        namespaced=False,
        custom=True,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def of(name: str) -> Kind:
    try:
        return BY_NAME[name]
    except KeyError:
        raise ValueError(
            f"unknown kind {name!r}: give the full plural name, such as baremetalhosts.metal3.io"
        ) from None
