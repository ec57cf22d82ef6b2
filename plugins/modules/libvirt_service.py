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
in_use:
  description:
    - What others have in libvirt, which had better stay installed for it. These are VMs, storage pools and networks.
      The network C(default) comes with libvirt, and counts while something is plugged into it.
  returned: when O(state=restored)
  type: list
  elements: str
  sample: [VM mine, network theirs]
kept_for:
  description: VMs for whose sake libvirt was left running, although O(state=started) has started it.
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

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, network_hook
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, operator_errors
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Reconciler
from ansible_collections.nometal.ipi.plugins.module_utils._observe import labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.libvirt_service.service import (
    Daemons,
    LibvirtService,
    Systemd,
    plan,
    wait_until_it_answers,
)

if TYPE_CHECKING:
    from typing import Any

TOPIC = "libvirt_service"
SHIPPED = "default"
LINKS = Path("/sys/class/net")
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
        memory.note({TOPIC: stopped})
        directories.note([network_hook.DISPATCHER.parent], memory)
    result = Reconciler(lambda: nullcontext(host), plan).run(desired, check_mode=check_mode)
    if not check_mode:
        wait_until_it_answers()
    return result


def restore(host: Systemd | Daemons, memory: HostMemory, *, check_mode: bool) -> dict[str, Any]:
    current = host.read()
    notes = memory.recall()
    started_by_us = current.running & set(notes.get(TOPIC, {}))
    in_use = things_of_others()
    vms = in_use["VM"]
    desired = LibvirtService(current.running - (set() if vms else started_by_us), stale=current.stale)
    result = Reconciler(lambda: nullcontext(host), plan).run(desired, check_mode=check_mode)
    if not check_mode:
        directories.remove(memory)
    listed = [f"{kind} {name}" for kind, names in in_use.items() for name in names]
    return {**result, "in_use": listed, "kept_for": vms if started_by_us else []}


def things_of_others() -> dict[str, list[str]]:
    """All that are left: the last lab has removed its own before it lets go of libvirt."""
    try:
        with connect("qemu:///system") as connection:
            return {
                "VM": sorted(domain.name() for domain in connection.listAllDomains()),
                "network": sorted(each.name() for each in connection.listAllNetworks() if is_of_others(each)),
                "storage pool": sorted(pool.name() for pool in connection.listAllStoragePools()),
            }
    except NotThereYetError:  # or this Python lacks its bindings: they are there for the others all the same
        return {"VM": labs.defined("domain")}


def is_of_others(network: Any) -> bool:
    if network.name() != SHIPPED:
        return True
    return bool(network.isActive()) and any(LINKS.glob(f"{network.bridgeName()}/brif/*"))


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    memory = HostMemory(Path(module.params["memory"]))
    act = start if module.params["state"] == "started" else restore
    with operator_errors(module):
        # Where systemd is in charge, and not merely installed, it keeps this directory.
        host = Systemd(module.params["layout"]) if Path("/run/systemd/system").is_dir() else Daemons()
        with one_at_a_time("libvirt_service", check_mode=module.check_mode):
            result = act(host, memory, check_mode=module.check_mode)
        module.exit_json(**result)


if __name__ == "__main__":
    main()
