#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bmc_software
short_description: The software of the BMC services
version_added: 0.1.0
description:
  - Installs what M(nometal.ipi.redfish_emulator) runs into a virtual environment of its own, which sees the
    distribution's Python packages too. All labs share it.
  - It is installed again when its requirements or its sources have changed, when the distribution's Python has become
    another one, when something of it was changed or removed, and when an installation was interrupted.
  - A new release is made and tried beside the one that is there, and then put in its place at once. If it cannot be
    made, all stays as it was. A service that runs keeps its release until it is restarted; a release from which nothing
    runs any more goes with the next installation.
  - pip goes by the settings of the host, such as C(/etc/pip.conf), and leaves no cache behind.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  path:
    description:
      - Directory of the releases, which is made and removed. Below it, C(bin/python) starts the release that counts.
      - C(/opt/*/bin) is where SELinux lets services run programs.
    type: path
    default: /opt/nometal/bmc
  requirements:
    description: What is needed from Python's package index, as in a requirements file. Required with O(state=present).
    type: str
  sources:
    description:
      - The files of the package C(nometal_bmc), text by name; names are relative to the package, such as C(app.py) and
        C(front/tls.py).
      - Required with O(state=present).
    type: dict
  python:
    description: The distribution's own Python, for which its libvirt bindings are made.
    type: path
    default: /usr/bin/python3
  pip_arguments:
    description: Further arguments of C(pip install), such as C(--no-index) and C(--find-links=/srv/wheels).
    type: list
    elements: str
    default: []
  state:
    description: Whether it is to be there or gone.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Install the software of the BMC services
  nometal.ipi.bmc_software:
    requirements: "{{ lookup('ansible.builtin.file', 'requirements.txt') }}"
    sources: "{{ dict(names | zip(query('ansible.builtin.file', *files, rstrip=false))) }}"
  vars:
    names: "{{ files | map('regex_replace', '.*/nometal_bmc/', '') }}"
    files: "{{ query('ansible.builtin.fileglob', *patterns) | sort }}"
    patterns:
      - nometal_bmc/*.py
      - nometal_bmc/bios/*.py
      - nometal_bmc/broker/*.py
      - nometal_bmc/config/*.py
      - nometal_bmc/events/*.py
      - nometal_bmc/faults/*.py
      - nometal_bmc/front/*.py
      - nometal_bmc/ipmi/*.py
      - nometal_bmc/machine/*.py
      - nometal_bmc/media/*.py
      - nometal_bmc/redfish/*.py
      - nometal_bmc/vms/*.py

- name: Remove it
  nometal.ipi.bmc_software:
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [install software]
kept:
  description: With O(state=absent), what is not the collection's own in the directory, and stays.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["/opt/nometal/bmc/notes.txt (not made by nometal.ipi)"]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.software import HostSoftware
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module

ARGUMENTS = {
    "path": {"type": "path", "default": "/opt/nometal/bmc"},
    "requirements": {"type": "str"},
    "sources": {"type": "dict"},
    "python": {"type": "path", "default": "/usr/bin/python3"},
    "pip_arguments": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
RULES = {"required_if": [("state", "present", ["requirements", "sources"])]}


def main() -> None:
    run_module(ARGUMENTS, HostSoftware.run, **RULES)


if __name__ == "__main__":
    main()
