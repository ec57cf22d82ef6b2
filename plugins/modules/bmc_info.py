#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bmc_info
short_description: What the BMCs of one lab say about its VMs
version_added: 0.1.0
description:
  - Asks the service that M(nometal.ipi.redfish_emulator) runs for a lab about each VM, as any client would, by Redfish.
  - VMs whose BMC speaks IPMI are listed with what is known without asking.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
  - nometal.ipi.bmc_service
"""

EXAMPLES = r"""
- name: Ask the BMCs
  nometal.ipi.bmc_info:
    lab: demo
  register: demo_bmcs

- name: Show which VMs are on
  ansible.builtin.debug:
    msg: "{{ demo_bmcs.nodes | selectattr('power', 'equalto', 'On') | map(attribute='name') }}"
"""

RETURN = r"""
nodes:
  description:
    - Of each VM its BMC's address, where the credentials for it stand, and what the BMC says.
    - C(power), C(power_restore), C(boot) and C(media) are null for a VM whose BMC gives no answer. C(trouble) says why.
    - C(power_restore) is what becomes of the VM after the host's start, C(LastState), C(AlwaysOn) or C(AlwaysOff).
    - C(failure) is C(login-refused) or C(timeout) where that is why, and empty otherwise.
  returned: success
  type: list
  elements: dict
  sample:
    - name: demo-worker-0
      uuid: c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826
      address: https://192.168.126.1:8000/redfish/v1/Systems/c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826
      credentials: {file: /var/lib/nometal/bmc/demo/credentials.json, key: demo-worker-0}
      power: "On"
      power_restore: LastState
      boot: {target: Hdd, enabled: Continuous, mode: UEFI}
      media: http://192.168.126.9/boot.iso
      trouble: ""
      failure: ""
faults:
  description: The faults that the BMCs have on purpose (M(nometal.ipi.bmc_faults)). Without faults, C(rules) is empty.
  returned: success
  type: dict
  sample:
    seed: 42
    rules:
      - fault: media-failed
        nodes: [demo-worker-0]
        methods: []
        path: "*"
        rate: 100
        after: 0
        times: 1
        status: null
        milliseconds: null
        seconds: null
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.info import information
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "home": {"type": "path", "default": "/var/lib/nometal/bmc"},
}


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    return {"changed": False, **information(params["home"], params["lab"])}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
