#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_install
short_description: The OpenShift installer, started on the host where nothing of Ansible's can end it
version_added: 0.1.0
description:
  - Starts C(create cluster), and returns at once. The installer runs on, whatever becomes of the connection or of the
    controller. M(nometal.ipi.cluster_watch) follows it.
  - Where the installer is running, it is left alone. Where it has failed or was killed, it goes on where that is
    possible, and starts over where nothing had been made yet. Otherwise the module fails and tells why, and
    O(restart=true) starts over.
  - Where the cluster is installed, nothing changes, whatever has changed in O(config), and also with O(restart=true).
    M(nometal.ipi.cluster_removal) removes it.
  - Nothing is begun where nodes run or have something on their disks and no installation is noted that has done it.
  - Before anything is removed or begun, the installer makes its manifests. What it says of O(config) is reported, and
    then nothing has changed.
  - All that the installer keeps lies in C(/var/lib/nometal/install/<lab>), which only root reads.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: Tells what there is to do. Neither the tools nor the secrets are needed for that.
  diff_mode:
    support: full
    description: Which of the installer's commands run. Never what install-config.yaml says.
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  version:
    description:
      - Release that is to be installed, as M(nometal.ipi.installer_tools) returns it.
      - If it is given, an installer of another release is refused.
    type: str
    default: ""
  wanted_version:
    description:
      - What the operator asks for, a release or a channel.
      - If an installation has begun with another release, or with one that is not of that channel, RV(note) says so.
    type: str
    default: ""
  tools:
    description: Directory of C(oc) and the installer, as M(nometal.ipi.installer_tools) returns it.
    type: path
    required: true
  config:
    description: The install-config.yaml as the filter P(nometal.ipi.install_config#filter) makes it, without secrets.
    type: dict
    required: true
  pull_secret:
    description: The pull secret, JSON with C(auths) in it. Needed to begin an installation.
    type: raw
  secret_config:
    description:
      - What else of install-config.yaml is secret, a mapping or JSON of one. It is merged over O(config).
      - Of a mapping, Ansible hides each value wherever it stands in what the module returns. JSON is hidden as a whole.
    type: raw
    default: {}
  credentials:
    description:
      - File with the accounts of the nodes' BMCs, as M(nometal.ipi.redfish_emulator) keeps it.
      - By default that of the lab below O(bmc_home).
    type: path
  manifests:
    description:
      - Manifests for the cluster, by file name, or JSON of that. Each is text, or a mapping or a list of mappings.
      - One that is called as one of the installer's own takes its place, which is noted.
    type: raw
    default: {}
  media_tls:
    description:
      - Whether virtual media is served by TLS.
      - With V(false) it comes over http, for BMCs that cannot verify the certificate. Up to 4.9 it always does.
    type: bool
    default: true
  environment:
    description:
      - Environment of the installer, such as proxies, a mapping or JSON of one.
      - What the module itself sets counts more. With a proxy in it, the lab's names and networks are added to
        C(no_proxy).
    type: raw
    default: {}
  restart:
    description:
      - Whether to start over where an installation has failed, was interrupted or cannot go on. B(What is there of it
        is removed), also what could be gone on with, and also from nodes of which nothing is noted.
      - An installer that runs is left alone, and so is a cluster that is installed. RV(note) says so.
    type: bool
    default: false
  nodes:
    description:
      - The lab's nodes on this host, as the lab model lists them. When something is removed, they are switched off, and
        their disks are made blank.
    type: list
    elements: dict
    default: []
  bridges:
    description: The bridges into which the lab's bootstrap VM is plugged, which tell it from those of other labs.
    type: list
    elements: str
    default: []
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
seealso:
  - module: nometal.ipi.cluster_watch
  - module: nometal.ipi.cluster_removal
"""

EXAMPLES = r"""
- name: Start the installation, or go on with it
  nometal.ipi.cluster_install:
    lab: "{{ lab.name }}"
    version: "{{ demo_tools.version }}"
    tools: "{{ demo_tools.directory }}"
    config: "{{ lab | nometal.ipi.install_config(demo_tools.version, ssh_key=demo_ssh_key) }}"
    pull_secret: "{{ demo_pull_secret }}"
    secret_config: "{{ demo_vaulted_config | to_json }}"
    manifests: "{{ lab | nometal.ipi.install_manifests | to_json }}"
    nodes: "{{ lab.nodes }}"
    bridges: "{{ lab.installer_bridges }}"
  register: demo_install

- name: Begin anew where it has failed
  nometal.ipi.cluster_install:
    lab: "{{ lab.name }}"
    tools: "{{ demo_tools.directory }}"
    config: "{{ lab | nometal.ipi.install_config }}"
    pull_secret: "{{ demo_pull_secret }}"
    nodes: "{{ lab.nodes }}"
    bridges: "{{ lab.installer_bridges }}"
    restart: true
"""

RETURN = r"""
decision:
  description:
    - V(fresh), an installation begins; V(resume), one goes on; V(attach), it is running already; V(done), the cluster
      is installed; V(must_restart), it does not go on, and the module has failed.
  returned: success, or where it must start over
  type: str
  sample: fresh
why:
  description: What speaks for it.
  returned: success, or where it must start over
  type: str
  sample: Nothing of this cluster is installed yet.
note:
  description: What may have been expected and does not happen. Often empty.
  returned: success, or where it must start over
  type: str
  sample: ""
commands:
  description: The installer's commands that run now, one after the other.
  returned: success, or where it must start over
  type: list
  elements: str
  sample: [create cluster]
directory:
  description: The installer's directory, with C(auth/kubeconfig) in it.
  returned: success, or where it must start over
  type: str
  sample: /var/lib/nometal/install/demo/cluster
removed:
  description: What was removed before, with O(restart=true), or of a bootstrap VM that had done its part.
  returned: success, or where it must start over
  type: list
  elements: str
  sample: []
"""

import hashlib
import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import secrets as bundle_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import manifest_files
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import secrets as config_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import (
    decision,
    installation,
    job_secrets,
    prepare,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.installation import Lab, Outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.prepare import Job
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.situation import Wanted
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import program
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.program import Program
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths, paths_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import release_of

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "version": {"type": "str", "default": ""},
    "wanted_version": {"type": "str", "default": ""},
    "tools": {"type": "path", "required": True},
    "config": {"type": "dict", "required": True},
    "pull_secret": {"type": "raw", "no_log": True},
    "secret_config": {"type": "raw", "default": {}, "no_log": True},
    "credentials": {"type": "path"},
    "manifests": {"type": "raw", "default": {}, "no_log": True},
    "media_tls": {"type": "bool", "default": True},
    "environment": {"type": "raw", "default": {}, "no_log": True},
    "restart": {"type": "bool", "default": False},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "bridges": {"type": "list", "elements": "str", "default": []},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def lab_from(params: dict[str, Any]) -> Lab:
    paths, tools = paths_in(params), Path(params["tools"])
    given = job_secrets.mapping_of("environment", params["environment"])
    environment = prepare.environment_of(paths, tools, given, params["config"])
    return Lab(
        paths=paths,
        wanted=wanted_from(params),
        environment=environment,
        find_program=partial(program.find, tools, params["version"], paths.directory),
        make_job=partial(job_from, params, environment),
    )


def paths_in(params: dict[str, Any]) -> Paths:
    paths = paths_of(params["lab"])
    called = params["config"].get("metadata", {}).get("name", paths.lab)
    if called != paths.lab:
        raise OperatorError(f"config.metadata.name: must be the name of the lab, {paths.lab} (got {called}).")
    return paths


def wanted_from(params: dict[str, Any]) -> Wanted:
    return Wanted(
        bridges=tuple(params["bridges"]),
        nodes=params["nodes"],
        bmc_home=Path(params["bmc_home"]),
        version=params["wanted_version"],
        config_digest=digest_of(params["config"]),
        restart=params["restart"],
        libvirt_uri=params["libvirt_uri"],
    )


def digest_of(config: dict[str, Any]) -> str:
    """Without the certificate of the BMCs' CA, which is renewed of its own accord."""
    public = config_secrets.without_secrets(config)
    public.get("platform", {}).get("baremetal", {}).pop("bmcVerifyCA", None)
    return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()


def job_from(params: dict[str, Any], environment: dict[str, str], found: Program) -> Job:
    manifests = manifest_files.texts_of(job_secrets.mapping_of("manifests", params["manifests"]))
    secret_config = job_secrets.mapping_of("secret_config", params["secret_config"])
    given = params["credentials"]
    logins_file = Path(given) if given else credentials.file_of(params["bmc_home"], params["lab"])
    full = config_secrets.with_secrets(
        params["config"],
        pull_secret=job_secrets.pull_secret_of(params["pull_secret"]),
        logins=job_secrets.logins_of(logins_file, params["lab"]),
        extra=secret_config,
    )
    return Job(
        program=found.path,
        release=release_of(found.version),
        config=full,
        secrets=bundle_secrets.given(params["config"], secret_config, manifests.values()),
        known_secrets=partial(bundle_secrets.known, bmc_home=Path(params["bmc_home"])),
        manifests=manifests,
        media_tls=params["media_tls"],
        environment=environment,
    )


def refuse_bad_input(params: dict[str, Any]) -> None:
    """Also where nothing is begun: it would hold up the next run, after all the stages before."""
    manifest_files.texts_of(job_secrets.mapping_of("manifests", params["manifests"]))
    job_secrets.mapping_of("secret_config", params["secret_config"])


def result_of(lab: Lab, outcome: Outcome) -> dict[str, Any]:
    todo = outcome.todo
    changed = todo.kind in (decision.FRESH, decision.RESUME)
    runs = "".join(f"{command}\n" for command in todo.commands) if changed else ""
    return {
        "changed": changed,
        "decision": todo.kind,
        "why": todo.why,
        "note": outcome.note,
        "commands": list(todo.commands),
        "directory": str(lab.paths.assets),
        "removed": list(outcome.removed),
        "diff": {"before": "", "after": runs},
    }


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    os.umask(0o077)
    lab = lab_from(params)
    refuse_bad_input(params)
    try:
        result = result_of(lab, installation.install(lab, check_mode=check_mode))
    except OSError as error:  # the disk is full, or somebody has made it read-only
        where = error.filename or lab.paths.directory
        raise OperatorError(f"{where}: {error.strerror or error}. Right that, then run this again.") from error
    must_restart = result["decision"] == decision.MUST_RESTART
    return {**result, "failed": True, "msg": result["why"]} if must_restart else result


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
