"""What the installer takes from an install-config: names, addresses, hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.stand_in import release
from support.stand_in.release import Release

STATIC = "bootstrapExternalStaticIP"


@dataclass(frozen=True)
class Lab:
    config: dict[str, Any]
    infra_id: str
    version: str

    @property
    def release(self) -> Release:
        return release.parse(self.version)

    @property
    def name(self) -> str:
        return str(self.config["metadata"]["name"])

    @property
    def domain(self) -> str:
        return f"{self.name}.{self.config['baseDomain']}"

    @property
    def api(self) -> str:
        return f"api.{self.domain}"

    @property
    def console(self) -> str:
        return f"https://console-openshift-console.apps.{self.domain}"

    @property
    def platform(self) -> dict[str, Any]:
        found: dict[str, Any] = self.config["platform"]["baremetal"]
        return found

    @property
    def api_vips(self) -> list[str]:
        return self._vips("api")

    @property
    def ingress_vips(self) -> list[str]:
        return self._vips("ingress")

    def _vips(self, of: str) -> list[str]:
        return list(self.platform.get(f"{of}VIPs") or [self.platform[f"{of}VIP"]])

    @property
    def provisioning_network(self) -> str:
        return str(self.platform.get("provisioningNetwork", "Managed"))

    @property
    def bridges(self) -> list[str]:
        found = [self.platform.get("externalBridge", "baremetal")]
        if self.provisioning_network != "Disabled":
            found.append(self.platform.get("provisioningBridge", "provisioning"))
        return found

    @property
    def bootstrap(self) -> str:
        return f"{self.infra_id}-bootstrap"

    @property
    def terraform(self) -> bool:
        return self.release < release.ONE_BINARY

    def hosts(self, *roles: str) -> list[dict[str, Any]]:
        """As many of these roles as the pools have replicas; a host without a role takes the next place."""
        return [host for role in roles for host in self._roles()[role]]

    @property
    def spares(self) -> list[dict[str, Any]]:
        return self._roles()["spare"]

    def _roles(self) -> dict[str, list[dict[str, Any]]]:
        wanted = {
            "master": self.config.get("controlPlane", {}).get("replicas", 3),
            "arbiter": self.config.get("arbiter", {}).get("replicas", 0),
            "worker": sum(pool.get("replicas", 3) for pool in self.config.get("compute", ())),
        }
        found: dict[str, list[dict[str, Any]]] = {role: [] for role in (*wanted, "spare")}
        for host in sorted(self.platform["hosts"], key=lambda host: not host.get("role")):
            places = [host["role"]] if host.get("role") else list(wanted)
            free = (role for role in places if len(found[role]) < wanted[role])
            found[next(free, "spare")].append(host)
        return found
