"""All examples of the documentation run as they are written, on one host: first in check mode, then for real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import checkout, examples, lab_host, stand_in_mirror
from support.checkout import ROOT
from support.examples import OURS, Task
from support.failures import ending
from support.install_lab import PULL_SECRET, SMALL, SSH_KEY
from support.small_installer import COMPLETE, INSTALLER
from support.stand_in import release

from ansible_collections.nometal.ipi.plugins.filter.lab_model import FilterModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

VERSION, CHANNEL = "4.20.3", "stable-4.20"
TOOLS, MIRROR, OFFICIAL = "/srv/tools", "/srv/mirror/ocp", "mirror.openshift.com"
# What makes something needs what stands before it; what removes something is run last, the other way round.
ORDER = (
    *(
        "lab_lock",
        "derive_lab",
        "lab_model",
        "lab_record",
        "lab_status",
        "host_doctor",
        "show_table",
        "host_info",
        "host_memory",
        "libvirt_leftovers",
        "libvirt_service",
    ),
    *("host_forwarding", "router_advertisements", "brought_packages", "labs_info", "directory_removal", "refusals"),
    *("storage_pool", "libvirt_bridge_net", "veth_pair", "lab_firewall", "split_dns", "installer_bridges", "bmh_vm"),
    *("lab_checkpoint", "checkpoint_info"),
    *(
        "bmc_software",
        "redfish_emulator",
        "bmc_faults",
        "bmc_info",
        "lab_export",
        "cluster_power",
        "rehearsal_image",
        "rehearsal",
        "rehearsal_page",
    ),
    *("installer_tools", "registry_logins", "install_config", "install_config_errors", "install_manifests"),
    *(
        "cluster_install",
        "cluster_watch",
        "cluster_info",
        "cluster_nodes",
        "cluster_access",
        "install_bundle",
        "cluster_removal",
        "follow",
    ),
)
ROLES = (
    *("host_prep", "lab_network", "node_vms", "bmc_emulation", "rehearsal", "ipi_install"),
    *("cluster_stop", "cluster_start", "cluster_nodes"),
)
PAGES = ("README.md", "docs/doctor.md", *(f"roles/{role}/README.md" for role in ROLES), "docs/bmc.md")
REMOVES = {"absent", "restored", "released", "tidied"}
ALWAYS_REMOVES = {"cluster_removal", "directory_removal", "libvirt_leftovers"}
# Only in check mode: they need a way to packages, a minute or more, or an hour.
LONG_TASKS = {"Make the image", "Rehearse the installation", "Write the page of the last rehearsal"}
LONG_ROLES = [{"name": f"{OURS}rehearsal"}, {"name": f"{OURS}ipi_install"}]
FILES = {
    "requirements.txt": "bmc/requirements.txt",
    "nometal_bmc": "bmc/nometal_bmc",
    "agent": "plugins/module_utils/_agent",
}
NODE_VMS = ROOT / "roles/node_vms"
INSTALL = {"version": CHANNEL, "source": MIRROR, "pull_secret_file": "~/pull-secret.json", "ssh_key_file": "~/key.pub"}
AWAY = {"name": "Have no libvirt", "ansible.builtin.command": "mv /usr/sbin/libvirtd /srv"}
BACK = {"name": "Have it back", "ansible.builtin.command": "mv /srv/libvirtd /usr/sbin"}
AUTH = "/var/lib/nometal/install/demo/cluster/auth"
INSTALLED = {
    "name": "Leave what an installer leaves",
    "ansible.builtin.shell": f"mkdir -p {AUTH} && printf 'cluster:\\n    server: x\\n' >{AUTH}/kubeconfig",
}
# As Red Hat's mirror is, which this host does not reach.
SERVE_MIRROR = f"""set -e
cd /srv
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={OFFICIAL} -addext subjectAltName=DNS:{OFFICIAL} \
    -keyout key.pem -out /usr/local/share/ca-certificates/mirror.crt 2>&1
update-ca-certificates
echo 127.0.0.1 {OFFICIAL} >>/etc/hosts
mkdir -p www/pub/openshift-v4/x86_64 && ln -s /srv/mirror www/pub/openshift-v4/x86_64/clients
systemd-run --unit=mirror python3 -c '
import functools, http.server, ssl
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="/srv/www")
server = http.server.ThreadingHTTPServer(("", 443), handler)
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain("/usr/local/share/ca-certificates/mirror.crt", "/srv/key.pem")
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()'
"""


def model(**spec: Any) -> dict[str, Any]:
    return dict(FilterModule().filters()["lab_model"]({"name": "demo", **spec}, ["hypervisor"]))


def variables() -> dict[str, Any]:
    """What the examples assume. The VMs are small, which the model refuses in a lab that is to be installed."""
    return {
        "lab": {**model(nodes={"control_plane": SMALL}), "install": model(install=INSTALL)["install"]},
        "demo_tools": {"directory": TOOLS, "version": VERSION},
        "demo_ssh_key": SSH_KEY,
        "demo_pull_secret": PULL_SECRET,
        "vault_pull_secret": PULL_SECRET,
        "demo_vaulted_config": {"proxy": {"httpsProxy": "http://me:secret@192.168.126.1:3128"}},
        "demo_image": {"path": "/var/cache/nometal/rehearsal/image"},
        "digest": release.digest(VERSION).removeprefix("sha256:"),
    }


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHost]:
    mirror = stand_in_mirror.make(tmp_path_factory.mktemp("mirror"), [VERSION], {CHANNEL: VERSION})
    with lab_host.start(layer="prepared") as started:
        started.copy_tree(mirror, MIRROR)
        started.run(SERVE_MIRROR)
        started.write(f"{TOOLS}/openshift-install", INSTALLER, mode="0755")
        started.write(f"{TOOLS}/scenario.json", json.dumps({"create cluster": {"log": COMPLETE}}))
        for path in (f"{TOOLS}/oc", "/usr/local/bin/oc"):
            started.write(path, "#!/bin/sh\n", mode="0755")
        yield started


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """As that of somebody who has taken the examples over, and as his home."""
    for name, path in FILES.items():
        (tmp_path / name).symlink_to(ROOT / path)
    (tmp_path / "pull-secret.json").write_text(PULL_SECRET)
    (tmp_path / "key.pub").write_text(SSH_KEY)
    return tmp_path


def variables_of(name: str) -> dict[str, Any]:
    """What only the examples of one module assume."""
    if name != "refusals":
        return {}
    stages = yaml.safe_load((ROOT / "playbooks/vars/stages.yml").read_text())
    given = {key: value for key, value in stages.items() if key.startswith("node_vms_")}
    defaults = yaml.safe_load((NODE_VMS / "defaults/main.yml").read_text())
    return {"role_path": str(NODE_VMS), **defaults, **given}


def removes(task: Task) -> bool:
    module = examples.module(task)
    given = task[module]
    asked = isinstance(given, dict) and (given.get("state") in REMOVES or given.get("tasks_from") == "teardown")
    return asked or module.removeprefix(OURS) in ALWAYS_REMOVES


def twice(name: str, tasks: list[Task]) -> list[Task]:
    """In check mode, and for real; a job that is followed runs for real only."""
    checked = [task for task in tasks if examples.module(task).startswith(OURS)]
    if any("async" in task for task in tasks):
        checked = []
    real = [task for task in tasks if task["name"] not in LONG_TASKS]
    blocks: list[Task] = [{"block": checked, "check_mode": True}, {"block": real}]
    given = [{**block, "vars": variables_of(name)} for block in blocks if block["block"]]
    if name == "cluster_access":
        return [INSTALLED, *given]
    return [AWAY, *given, BACK] if name == "libvirt_leftovers" and given else given


CONFIGURED = {
    "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections"),
    "ANSIBLE_SSH_CONTROL_PATH_DIR": str(Path.home() / ".ansible/cp"),  # the path of a socket must not be long
}


def play(tasks: list[Task]) -> dict[str, Any]:
    return {"hosts": "hypervisors", "become": True, "gather_facts": False, "vars": variables(), "tasks": tasks}


def run(host: LabHost, below: Path, plays: list[Any], *arguments: str) -> str:
    playbook = below / "examples.yml"
    playbook.write_text(yaml.safe_dump(plays, sort_keys=False))
    program = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [program, playbook, "-i", checkout.inventory(host, below, name="demo"), *arguments],
        cwd=ROOT,
        env={**os.environ, **CONFIGURED, "HOME": str(below)},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, ending(done.stdout)
    return done.stdout


@pytest.mark.long
def test_those_of_modules_and_filters(host: LabHost, directory: Path) -> None:
    documented = examples.of_plugins()
    assert {*ORDER} == {*documented}
    tasks = []
    for name in ORDER:
        assert re.search(rf"{OURS}{name}\b", str(documented[name])), f"{name} has no example"
        tasks += twice(name, [task for task in documented[name] if not removes(task)])
    for name in reversed(ORDER):
        tasks += twice(name, [task for task in documented[name] if removes(task)])
    told = run(host, directory, [play(tasks)])
    assert re.search(r"^hypervisor .* skipped=0 ", told, re.MULTILINE)


@pytest.mark.full
def test_those_of_roles_and_on_pages(host: LabHost, directory: Path) -> None:
    documented = examples.of_pages()
    playbooks = documented.pop("docs/awx.md")
    assert {*documented} == {*PAGES}
    made = [task for page in PAGES for task in documented[page] if not removes(task)]
    removed = [task for page in reversed(PAGES) for task in documented[page] if removes(task)]
    for task in made:
        if task.get("ansible.builtin.import_role") in LONG_ROLES:
            task["when"] = "ansible_check_mode"
    plays = [play([*made, *removed])]
    run(host, directory, [*plays, *playbooks], "--check")
    run(host, directory, plays)
