"""How baremetal-operator comes to a BMC: by the host's address, its Secret and the authority for BMCs."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from support.stand_in.bmc import has_drive
from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Access, Cluster
from support.stand_in.controllers.metal3_host import REGISTRATION, Metal3Host
from support.stand_in.controllers.objects import CONFIG_MAPS, HOSTS, NAMESPACE, PROVISIONINGS, SECRETS, Object

AUTHORITY, AUTHORITY_KEY = "bmc-verify-ca", "verify_ca.crt"
LABEL = {"environment.metal3.io": "baremetal"}
DRIVERS = (
    *("ipmi", "libvirt", "redfish", "ilo5-redfish", "idrac-redfish"),
    *("redfish-virtualmedia", "ilo5-virtualmedia", "idrac-virtualmedia", "redfish-uefihttp"),
)
OLD_DRIVERS = ("ibmc", "idrac", "ilo4", "ilo5", "irmc")
KEYS = ("username", "password")


class Refused(Exception):  # noqa: N818 - reads as a sentence
    """Before the BMC is asked."""

    def __init__(self, message: str, event: str = "RegistrationError", steps: float | None = None) -> None:
        super().__init__(message)
        self.event = event
        self.steps = steps
        """Until it is looked at again; None as after any error."""


@dataclass
class Registration:
    cluster: Cluster
    _accesses: dict[str, Access] = field(default_factory=dict)
    """What Ironic has of each host, by uid."""

    def secret(self, host: Metal3Host) -> Object | None:
        return self.cluster.find(SECRETS, host.bmc.get("credentialsName", ""), NAMESPACE)

    def authority(self) -> Object | None:
        """Before 4.21 nothing mounts it."""
        return self.cluster.find(CONFIG_MAPS, AUTHORITY, NAMESPACE) if self.cluster.is_at_least(4, 21) else None

    def is_due(self, host: Metal3Host) -> bool:
        """The Secret is another one, or the address, or it has not been tried with success."""
        good, secret = host.status.get("goodCredentials") or {}, self.secret(host)
        version = secret and secret["metadata"]["resourceVersion"]
        return good.get("credentialsVersion") != version or host.status.get("errorType") == REGISTRATION

    def access(self, host: Metal3Host) -> Access:
        secret, authority = self._claimed(host), self.authority()
        self._check(host)
        told = {key: _plain((secret.get("data") or {}).get(key, "")) for key in KEYS}
        for key, value in told.items():
            if not value:
                why = f"Validation error with BMC credentials: Missing BMC connection detail '{key}' in credentials"
                raise Refused(why, "BMCCredentialError")
        found = Access(
            str(host.bmc["address"]),
            told["username"],
            told["password"],
            verify=not host.bmc.get("disableCertificateVerification"),
            authority=str((authority or {}).get("data", {}).get(AUTHORITY_KEY, "")),
        )
        self._accesses[host.uid] = found
        return found

    def last_access(self, host: Metal3Host) -> Access:
        """With which it may be got rid of even without a Secret."""
        try:
            return self.access(host)
        except Refused:
            if host.uid in self._accesses:
                return self._accesses[host.uid]
            raise

    def forget(self, host: Metal3Host) -> None:
        self._accesses.pop(host.uid, None)

    def credentials(self, host: Metal3Host) -> Object:
        """For goodCredentials and triedCredentials."""
        secret = self.secret(host)
        found = {"name": host.bmc.get("credentialsName", ""), "namespace": NAMESPACE}
        return {"credentials": found, "credentialsVersion": secret["metadata"]["resourceVersion"] if secret else ""}

    def _claimed(self, host: Metal3Host) -> Object:
        name = host.bmc.get("credentialsName", "")
        if not name:
            raise Refused("The BMC secret reference is empty", "BMCCredentialError")
        secret = self.secret(host)
        if not secret:
            why = f"BMC CredentialsName secret doesn't exist The BMC secret {NAMESPACE}/{name} does not exist"
            raise Refused(why, "BMCCredentialError", steps=1)
        if not objects.owned_by(secret, host.item) and not host.is_deleted:

            def claim(item: Object) -> None:
                item["metadata"]["labels"] = {**objects.labels_of(item), **LABEL}
                owners = item["metadata"].get("ownerReferences") or []
                item["metadata"]["ownerReferences"] = [*owners, objects.owner(host.item, controller=False)]

            self.cluster.change(SECRETS, secret, claim, "baremetal-operator")
            secret = self.secret(host) or secret
        return secret

    def _check(self, host: Metal3Host) -> None:
        address = str(host.bmc.get("address", ""))
        scheme = urlsplit(address).scheme if "://" in address else "ipmi"
        driver = scheme.partition("+")[0]
        known = DRIVERS if self.cluster.is_at_least(4, 13) else DRIVERS + OLD_DRIVERS
        if driver not in known:
            raise Refused(f"Unknown BMC type '{driver}' for address {address}")
        provisioning = self.cluster.find(PROVISIONINGS, "provisioning-configuration")
        disabled = provisioning and objects.spec(provisioning).get("provisioningNetwork") == "Disabled"
        if disabled and not has_drive(host.spec):
            raise Refused(f"BMC driver {driver} requires a provisioning network")
        for other in self.cluster.store.list(HOSTS, NAMESPACE):
            one = Metal3Host(self.cluster, other)
            if one.uid != host.uid and one.node and one.mac == host.mac and not host.node:
                raise Refused(f"MAC address {host.mac} conflicts with existing node {NAMESPACE}~{one.name}")


def _plain(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
