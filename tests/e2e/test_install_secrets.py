"""A secret in every input of an installation: where it belongs it arrives, and elsewhere there is none of it."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret
from support import checkout, install_lab
from support.failures import ending
from support.install_lab import InstallLab
from support.secret_hunt import Hunt, Witness
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

VERSION = "stable-4.14"
"""Whose installer oc takes out of the release image, with the pull secret."""
OWN = "/var/lib/nometal/install/lab"
CREDENTIALS = "/var/lib/nometal/bmc"
SCENARIO = install_lab.SCENARIO
RUNNING = (OWN, CREDENTIALS, "/var/lib/libvirt/openshift-images", "/var/lib/libvirt/stand-in")
SPEED = 0.03
TOOLS = "/var/cache/nometal/tools/"
CANARY = "Canary in the command line"
MARK = f"Qz7Planted{secrets.token_hex(3)}"
KEY = f"-----BEGIN PRIVATE KEY-----\n{MARK}PrivateKey\n-----END PRIVATE KEY-----\n"


def planted(what: str) -> str:
    return f"{MARK}{what}"


class FromVault(str):
    __slots__ = ()


def pull_secret(what: str, kind: type[str] = str) -> dict[str, Any]:
    """Not all of it looks the same once it has become JSON or YAML."""
    login = kind(base64.b64encode(f"robot:{planted(what)}".encode()).decode())
    own = {"auth": login, "password": kind(f'"{planted(what)}\\'), "email": "nobody@example.test"}
    return {"auths": {"registry.example.test": own, "quay.io": {"auth": login}}}


NESTED = f"ä: {planted('Nested')} 'so'"
SECRET_CONFIG = {
    "proxy": {"httpProxy": f"http://me:{planted('Proxy')}@proxy.example.test:3128", "noProxy": ".example.test"},
    "metadata": {"notes": [{"of": NESTED}]},
}
ENVIRONMENT = {
    "https_proxy": f"http://me:{planted('Environment')}@proxy.example.test:3128",
    "OPENSHIFT_INSTALL_TOKEN": planted("Token"),
    "OPENSHIFT_INSTALL_TRIES": "1",
}
TEMPLATE = """\
apiVersion: v1
kind: Secret
metadata: {name: cloud, namespace: "{{ lab.name }}"}
stringData: {conf: "key {{ planted_in_template }}"}
"""
COPIED = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "copied"},
    "data": {"conf": base64.b64encode(planted("Copied").encode()).decode()},
}
GIVEN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "given"},
    "stringData": {"conf": f"first\n{planted('GivenManifest')}\n"},
}
BROKEN = f"kind: Secret\nstringData:\n  conf: {planted('Broken')}: 'so\n"
OTHERS = ("Proxy", "Nested", "Environment", "Token", "Template", "Copied", "GivenManifest")
ALL = ("PullFile", "PullText", "PullMapping", *OTHERS, "Broken", "PrivateKey")
QUOTED = f"{ENVIRONMENT['https_proxy']} does not like '{NESTED}', nor " + " ".join(
    [
        *map(planted, ("PullFile", "Proxy", "Environment", "Token", "Copied", "GivenManifest")),
        f"key {planted('Template')}",
    ]
)
"""The installer may complain of anything that it was given."""


@dataclass
class Controller:
    """Where Ansible keeps and writes everything, so that all of it can be searched."""

    directory: Path
    inputs: Path
    outputs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self.inputs.mkdir()
        (self.inputs / "password").write_text("of-the-vault")
        self._vault = VaultLib([("default", VaultSecret(b"of-the-vault"))])

    def vaulted(self, **variables: Any) -> Path:
        """A file, all of it from the vault."""
        return self._written(self._vault.encrypt(yaml.safe_dump(variables)).decode())

    def with_vaulted(self, **variables: Any) -> Path:
        """A file with texts in it that are from the vault."""

        class Dumper(yaml.SafeDumper):
            pass

        def encrypted(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
            return dumper.represent_scalar("!vault", self._vault.encrypt(text).decode(), style="|")

        Dumper.add_representer(FromVault, encrypted)
        return self._written(yaml.dump(variables, Dumper=Dumper))

    def _written(self, text: str) -> Path:
        path = self.inputs / f"{secrets.token_hex(4)}.yml"
        path.write_text(text)
        return path

    def _environment(self) -> dict[str, str]:
        kept = self.directory
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ANSIBLE_HOME": str(kept / "home"),
            "ANSIBLE_LOG_PATH": str(kept / "ansible.log"),
            "ANSIBLE_RETRY_FILES_ENABLED": "true",
            "ANSIBLE_RETRY_FILES_SAVE_PATH": str(kept / "retries"),
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(kept / "facts"),
            "ANSIBLE_DISPLAY_TRACEBACK": "always",
        }

    def play(self, playbook: str, inventory: Path, *files: Path, more: tuple[str, ...], as_awx: bool) -> str:
        vars_files = [word for file in files for word in ("-e", f"@{file}")]
        options = ["-vvv", "--diff", "--vault-password-file", str(self.inputs / "password"), *vars_files, *more]
        command = self._as_awx if as_awx else checkout.command
        done = subprocess.run(
            command(playbook, inventory, *options),
            cwd=checkout.ROOT,
            env=self._environment(),
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=checkout.MAKE_SECONDS,
        )
        self.outputs.append(done.stdout)
        return done.stdout

    def _as_awx(self, playbook: str, inventory: Path, *options: str) -> list[str]:
        """With ansible-runner, which keeps each event."""
        program = str(Path(sys.executable).with_name("ansible-runner"))
        what = ["-p", f"{checkout.ROOT}/playbooks/{playbook}.yml", "--project-dir", str(checkout.ROOT)]
        ways = ["--inventory", str(inventory), f"--cmdline={' '.join(options)}"]
        return [program, "run", str(self.directory / "runner"), *what, *ways]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[InstallLab]:
    # Known without a lease, for which a failure that comes this soon does not wait: `gather bootstrap` is to be run.
    with install_lab.start(tmp_path, bootstrap={"address": "static", "ip": "192.168.126.9"}) as started:
        yield started


def disk(host: LabHost) -> Path:
    """All of it, file systems in memory included."""
    return Path(f"/proc/{host.leader}/root")


def here(host: LabHost, path: str) -> Path:
    return disk(host) / path.lstrip("/")


def logins(host: LabHost) -> dict[str, str]:
    told = json.loads(here(host, f"{CREDENTIALS}/lab/credentials.json").read_text())
    return {f"the BMC of {name}": login["password"] for name, login in told.items()}


def access(host: LabHost) -> dict[str, str]:
    """To the cluster, as the installer has made it."""
    kubeconfig = yaml.safe_load(here(host, f"{OWN}/cluster/auth/kubeconfig").read_text())
    key = base64.b64decode(kubeconfig["users"][0]["user"]["client-key-data"]).decode()
    password = here(host, f"{OWN}/cluster/auth/kubeadmin-password").read_text().strip()
    return {"kubeadmin": password, "kubeconfig": key.splitlines()[1]}


def open_to_others(host: LabHost) -> list[str]:
    found = [path for path in here(host, OWN).rglob("*") if not path.is_symlink()]
    assert found
    return [str(path) for path in (here(host, OWN), *found) if path.stat().st_mode & 0o077]


@dataclass
class Search:
    """Through all that a run may have left, and what was seen while it ran."""

    host: LabHost
    controller: Controller
    secrets: dict[str, str]
    began: float = field(default_factory=time.time)
    found: list[str] = field(default_factory=list)

    @property
    def hunt(self) -> Hunt:
        return Hunt(self.secrets, MARK)

    def journal(self) -> bytes:
        return base64.b64decode(self.host.run("journalctl --output=export --all | base64 --wrap=0").stdout)

    def run(self, when: str, *allowed: str) -> None:
        """Allowed: where secrets may lie, unless others can read it."""
        hunt, host, own = self.hunt, self.host, self.controller
        wait_until("Ansible's jobs have cleared up", lambda: not list(here(host, "/root/.ansible/tmp").glob("*")))
        found = [
            *hunt.found_in("".join(own.outputs), "the output"),
            *hunt.found_in(self.journal(), "the journal"),
            *hunt.found_below(own.directory),
            *hunt.found_below(here(host, f"{OWN}/bundles")),
            *hunt.found_below(disk(host), self.began, (SCENARIO, *allowed)),
            *(f"{path} is open to others" for path in hunt.public_below(disk(host), self.began) if path != SCENARIO),
        ]
        self.found += [f"{when}: {line}" for line in found]


@dataclass
class Operator:
    """Who has a secret in everything that can be given."""

    host: LabHost
    lab: InstallLab
    files: Path
    controller: Controller
    search: Search

    def __post_init__(self) -> None:
        self._manifests = self.files / "manifests"
        self._manifests.mkdir()
        (self._manifests / "zz-cloud.yaml.j2").write_text(TEMPLATE)
        (self._manifests / "zz-copied.yml").write_text(yaml.safe_dump(COPIED))
        self._common = [
            self.controller.vaulted(
                ipi_install_secret_config=SECRET_CONFIG, ipi_install_manifests={"zz-given.yaml": GIVEN}
            ),
            self.controller.with_vaulted(
                ipi_install_environment={name: FromVault(value) for name, value in ENVIRONMENT.items()},
                planted_in_template=FromVault(planted("Template")),
            ),
        ]

    def plays(self, playbook: str, *more: str, as_awx: bool = False, install: Any = None, **variables: Any) -> str:
        """What it says."""
        inventory = self.lab.inventory(version=VERSION, manifests_dir=str(self._manifests), **(install or {}))
        (self.files / "files/pull-secret.json").write_text(json.dumps(pull_secret("PullFile")))
        given = [*self._common, self.controller.with_vaulted(**variables)]
        return self.controller.play(playbook, inventory, *given, more=more, as_awx=as_awx)

    def is_refused(self) -> None:
        (self.files / "trust.pem").write_text(KEY)
        trusts = {"trust_bundle_file": str(self.files / "trust.pem")}
        as_text = FromVault(json.dumps(pull_secret("PullText")))
        said = self.plays("install", "--check", install=trusts, ipi_install_pull_secret=as_text)
        assert "The trust bundle contains a private key" in said, ending(said)

        broken = {"zz-broken.yaml": FromVault(BROKEN)}
        said = self.plays("install", ipi_install_pull_secret=as_text, ipi_install_manifests=broken)
        assert re.search(r"Manifest zz-broken\.yaml must be valid YAML: .* in line 3\.", said), ending(said)
        self.search.run("refused", CREDENTIALS)

    def fails(self) -> None:
        self.lab.scenario(speed=SPEED, fail={"stage": "bootstrap", "message": QUOTED})
        said = self.plays("install")
        bundle = re.search(r"/var/lib/nometal/install/\S+\.tar\.gz", said)
        assert bundle, ending(said)
        assert "rendered-assets/openshift/manifests/zz-cloud.yaml" in self.host.run(["tar", "-tzf", bundle[0]]).stdout
        assert self._arrived("install-config.yaml") > {"PullFile", "Proxy", "Nested"}
        assert self._arrived("install-config.yaml") & {*logins(self.host)}
        assert self._arrived("plan.json") == {"Environment", "Token"}
        assert self._arrived("cluster/.openshift_install.log") >= {"PullFile", *OTHERS}
        consumed = {"PullFile", "Proxy", "Nested", "Template", "Copied", "GivenManifest"}
        assert self._arrived("cluster/.openshift_install_state.json") >= consumed
        self.search.secrets.update(access(self.host))
        self.search.run("failed", *RUNNING)
        assert open_to_others(self.host) == []

    def installs(self) -> None:
        self.lab.scenario(speed=SPEED)
        said = self.plays(
            "install",
            as_awx=True,
            ipi_install_pull_secret=pull_secret("PullMapping", FromVault),
            ipi_install_restart=True,
        )
        assert "runs OpenShift 4.14" in said, ending(said)
        assert "PullMapping" in self._arrived("install-config.yaml")
        self.search.secrets.update({f"new {name}": secret for name, secret in access(self.host).items()})
        self.search.run("installed", *RUNNING)
        assert open_to_others(self.host) == []

    def removes(self) -> None:
        said = self.plays("teardown", "-e", "teardown_scope=cluster")
        assert "failed=0" in said, ending(said)
        assert not here(self.host, OWN).exists()
        self.search.run("removed", CREDENTIALS)

    def _arrived(self, name: str) -> set[str]:
        return set(self.search.hunt.names_in(here(self.host, f"{OWN}/{name}").read_bytes()))


def plant_canaries(host: LabHost, witness: Witness) -> None:
    """By which it is seen that the search finds something."""
    name = planted("Canary")
    host.run(f"logger {name}; echo {name} | base64 | gzip >/var/log/canary.gz")
    with subprocess.Popen(host.enter(["sh", "-c", "read -r _; true", name]), stdin=subprocess.PIPE) as canary:
        wait_until("the canary is seen", lambda: any(line.startswith(CANARY) for line in list(witness.leaks)))
        canary.communicate(b"\n")


@pytest.mark.long
def test_secrets_stay_where_they_belong(lab: InstallLab, tmp_path: Path) -> None:
    host = lab.host
    controller = Controller(tmp_path / "controller", tmp_path / "inputs")
    search = Search(host, controller, {**{what: planted(what) for what in ALL}, **logins(host)})
    operator = Operator(host, lab, tmp_path, controller, search)
    canary = Hunt({"Canary": planted("Canary")}, MARK)
    with Witness(Hunt({**search.secrets, "Canary": planted("Canary")}, MARK), TOOLS) as witness:
        plant_canaries(host, witness)
        operator.is_refused()
        operator.fails()
        operator.installs()
        operator.removes()

    assert "canary.gz" in str(canary.found_below(here(host, "/var/log"), search.began))
    assert canary.names_in(search.journal())
    assert any(line.startswith(CANARY) for line in witness.leaks)
    assert witness.seen_in_trusted >= {"Environment", "Token"}
    assert {path.name for path in controller.directory.iterdir()} >= {"ansible.log", "runner", "home"}
    assert [line for line in (*search.found, *sorted(witness.leaks)) if not line.startswith("Canary")] == []
