#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: libvirt_service
short_description: libvirt running on this host, now and after a reboot
version_added: 0.1.0
description:
  - Starts libvirt as this host starts services, as one daemon or as the modular ones, under systemd or without any
    service manager, and waits until the socket that the OpenShift installer dials answers.
  - What it starts is noted first, so that O(state=restored) stops that and nothing else.
    Under systemd, a target of its own pulls libvirt in at boot; how libvirt's own units are enabled stays as it is.
  - It also installs the hook through which libvirt tells the labs that one of its networks has started or stopped,
    also at boot. libvirt looks for hooks at its start only, so a daemon that was started before is restarted, once.
    Networks and VMs run on meanwhile.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  layout:
    description:
      - How this distribution runs libvirt.
      - A host on which C(libvirtd) is in use keeps it, whatever is said here.
    type: str
    choices: [monolithic, modular]
    default: monolithic
  state:
    description:
      - V(started) has libvirt running now and, under systemd, at boot.
      - V(restored) stops what V(started) started here, unless VMs are defined that need it, and removes the hook.
    type: str
    choices: [started, restored]
    default: started
"""

EXAMPLES = r"""
- name: Have libvirt running
  nometal.ipi.libvirt_service:
    layout: modular

- name: Put it back as it was
  nometal.ipi.libvirt_service:
    state: restored
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample:
    - install /etc/libvirt/hooks/network.d/nometal
    - start libvirtd.socket
    - enable nometal-libvirt.target
vms:
  description: VMs that are defined. libvirt had better stay installed for them.
  returned: when O(state=restored)
  type: list
  elements: str
  sample: []
kept_for:
  description: Those of them for whose sake libvirt was left running, although O(state=started) has started it.
  returned: when O(state=restored)
  type: list
  elements: str
  sample: []
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import labs, network_hook
from ansible_collections.nometal.ipi.plugins.module_utils._host.files import remove_empty
from ansible_collections.nometal.ipi.plugins.module_utils._host.libvirt_service import (
    Daemons,
    LibvirtService,
    Systemd,
    plan,
    wait_until_it_answers,
)
from ansible_collections.nometal.ipi.plugins.module_utils._host.memory import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import NotThereYetError, Reconciler

if TYPE_CHECKING:
    from typing import Any

TOPIC = "libvirt_service"
DIRECTORIES = "hook_directories"
ARGUMENTS = {
    "layout": {"type": "str", "choices": ["monolithic", "modular"], "default": "monolithic"},
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
    "state": {"type": "str", "choices": ["started", "restored"], "default": "started"},
}


def start(host: Systemd | Daemons, memory: HostMemory, *, check_mode: bool) -> dict[str, Any]:
    current = host.read()
    wanted = host.wanted()
    desired = replace(wanted, running=current.running | wanted.running)
    if not check_mode:
        stopped = dict.fromkeys(desired.running - current.running, "stopped")
        memory.note({TOPIC: stopped, DIRECTORIES: dict.fromkeys(network_hook.missing_directories(), "missing")})
    result = Reconciler(lambda: nullcontext(host), plan).run(desired, check_mode=check_mode)
    if not check_mode:
        wait_until_it_answers()
    return result


def restore(host: Systemd | Daemons, memory: HostMemory, *, check_mode: bool) -> dict[str, Any]:
    current = host.read()
    notes = memory.recall()
    started_by_us = current.running & set(notes.get(TOPIC, {}))
    vms = vms_of_others()
    desired = LibvirtService(current.running - (set() if vms else started_by_us), stale=current.stale)
    result = Reconciler(lambda: nullcontext(host), plan).run(desired, check_mode=check_mode)
    if not check_mode:
        for directory in sorted(notes.get(DIRECTORIES, {}), reverse=True):  # what lies below another comes first
            remove_empty(Path(directory))
    return {**result, "vms": vms, "kept_for": vms if started_by_us else []}


def vms_of_others() -> list[str]:
    """All that are left: the last lab has removed its own before it lets go of libvirt."""
    try:
        with connect("qemu:///system") as connection:
            return sorted(domain.name() for domain in connection.listAllDomains())
    except NotThereYetError:  # or this Python lacks its bindings: they are there for the others all the same
        return labs.defined("domain")


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    memory = HostMemory(Path(module.params["memory"]))
    act = start if module.params["state"] == "started" else restore
    try:
        # Where systemd is in charge, and not merely installed, it keeps this directory.
        host = Systemd(module.params["layout"]) if Path("/run/systemd/system").is_dir() else Daemons()
        module.exit_json(**act(host, memory, check_mode=module.check_mode))
    except OperatorError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
