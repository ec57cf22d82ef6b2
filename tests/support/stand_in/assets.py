"""The installer's directory: what it consumes, what it writes, and what it remembers of itself."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import string
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.stand_in import checks, documents, ending, pki, release
from support.stand_in.ending import Failed
from support.stand_in.lab import Lab
from support.stand_in.log import Log
from support.stand_in.manifests import manifests

STATE = ".openshift_install_state.json"
CONFIG, ID, PASSWORD = "*installconfig.InstallConfig", "*installconfig.ClusterID", "*password.KubeadminPassword"
CA, ADMIN, FILES = "*tls.RootCA", "*tls.AdminKubeConfig", "*manifests.Files"
FOLDERS = ("manifests", "openshift")
LONGEST_PREFIX, RANDOM = 21, 5
LETTERS = string.ascii_lowercase + string.digits


class Assets:
    def __init__(self, directory: Path, version: str, event_log: Log) -> None:
        self.directory = directory
        self.version = version
        self._log = event_log
        self._path = directory / STATE
        self.state: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}

    def load(self) -> Lab:
        """From the files that are there to be consumed, over what is remembered."""
        self._log.debug("Loading Install Config...")
        self._take_config()
        self._take_manifests()
        return self.lab

    @property
    def lab(self) -> Lab:
        if CONFIG not in self.state:
            where = self.directory / "install-config.yaml"
            raise Failed(ending.CONFIG, f"{checks.FETCHING}: open {where}: no such file or directory")
        return Lab(self.state[CONFIG]["config"], self.state[ID]["InfraID"], self.version)

    def _take_config(self) -> None:
        path = self.directory / "install-config.yaml"
        if not path.exists():
            return
        config = checks.read_config(path.read_text(encoding="utf-8"), release.parse(self.version), self._log)
        if config != self.state.get(CONFIG, {}).get("config"):
            self.state = _new_cluster(config)
        self._log.info("Consuming Install Config from target directory")

    def _take_manifests(self) -> None:
        found: dict[str, str] = {}
        for folder in FOLDERS:
            for path in sorted((self.directory / folder).glob("*")):
                found[f"{folder}/{path.name}"] = text = path.read_text(encoding="utf-8")
                try:
                    documents.load_all(text)
                except documents.Unreadable as error:
                    why = f'failed to fetch Cluster: failed to load asset "Openshift Manifests": {path.name}: {error}'
                    raise Failed(ending.FATAL, why) from error
        if found:
            self.state[FILES] = found
            for what in ("Openshift Manifests", "Common Manifests", "Master Machines", "Worker Machines"):
                self._log.info(f"Consuming {what} from target directory")

    def consumed(self) -> None:
        """What has been read is remembered, and gone from the directory."""
        lab = self.lab
        self.state.setdefault(FILES, manifests(lab, self.state[PASSWORD]["Password"]))
        self._write(STATE, json.dumps(self.state, indent=1))
        (self.directory / "install-config.yaml").unlink(missing_ok=True)
        for folder in FOLDERS:
            shutil.rmtree(self.directory / folder, ignore_errors=True)

    @property
    def files(self) -> dict[str, str]:
        """Manifests, by file name."""
        return dict(self.state[FILES])

    def write_manifests(self) -> None:
        for name, text in self.files.items():
            self._write(name, text)

    def write_identity(self) -> None:
        """How the cluster is called, and how it is reached."""
        lab, admin = self.lab, pki.Pair(**self.state[ADMIN])
        metadata = {
            "clusterName": lab.name,
            "clusterID": self.state[ID]["UUID"],
            "infraID": lab.infra_id,
            "baremetal": {
                "libvirtURI": lab.platform.get("libvirtURI", "qemu:///system"),
                "bootstrapProvisioningIP": lab.platform.get("bootstrapProvisioningIP", lab.api_vips[0]),
                "provisioningHostIP": lab.platform.get("clusterProvisioningIP", lab.api_vips[0]),
            },
        }
        self._write("metadata.json", json.dumps(metadata))
        self._write("auth/kubeconfig", pki.kubeconfig(self.ca, admin, lab.api, lab.api_vips[0]))
        self._write("auth/kubeadmin-password", self.password)
        self._write("terraform.tfvars.json", json.dumps({"cluster_id": lab.infra_id, "cluster_domain": lab.domain}))
        self._write("terraform.platform.auto.tfvars.json", json.dumps({"hosts": lab.platform["hosts"]}))

    def write_ignition(self) -> None:
        for role in ("bootstrap", "master", "worker"):
            self._write(f"{role}.ign", self.ignition(role))

    def ignition(self, role: str) -> str:
        """As the real one it is full of secrets."""
        files = {"/etc/install-config": self.state[CONFIG]["config"], "/etc/kubeadmin": self.password, "role": role}
        return json.dumps({"ignition": {"version": "3.2.0"}, "storage": files})

    @property
    def password(self) -> str:
        return str(self.state[PASSWORD]["Password"])

    @property
    def ca(self) -> pki.Pair:
        return pki.Pair(**self.state[CA])

    @property
    def media_by_tls(self) -> bool:
        if self.lab.release < release.MEDIA_BY_TLS:
            return False
        every = [item for text in self.state[FILES].values() for item in documents.load_all(text)]
        own = (item for item in every if isinstance(item, Mapping) and item.get("kind") == "Provisioning")
        return not any(item.get("spec", {}).get("disableVirtualMediaTLS") for item in own)

    def forget(self) -> None:
        for name in (STATE, "metadata.json", "terraform.tfvars.json", "terraform.platform.auto.tfvars.json"):
            (self.directory / name).unlink(missing_ok=True)
        shutil.rmtree(self.directory / "auth", ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        path = self.directory / name
        path.parent.mkdir(mode=0o750, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def _new_cluster(config: dict[str, Any]) -> dict[str, Any]:
    ca = pki.authority("kube-apiserver-lb-signer")
    admin = pki.issue(ca, "system:admin", groups=["system:masters"])
    password = "-".join(_random(RANDOM, string.ascii_letters + string.digits) for _part in range(4))
    prefix = config["metadata"]["name"][:LONGEST_PREFIX].rstrip("-")
    return {
        CONFIG: {"config": config},
        ID: {"UUID": str(uuid.uuid4()), "InfraID": f"{prefix}-{_random(RANDOM, LETTERS)}"},
        PASSWORD: {"Password": password},
        CA: vars(ca),
        ADMIN: vars(admin),
    }


def _random(length: int, letters: str) -> str:
    return "".join(secrets.choice(letters) for _letter in range(length))
