# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: lab_model
short_description: The model of a lab, from its specification
version_added: 0.1.0
author:
  - nometal.ipi maintainers (@nometal)
description:
  - Turns C(lab_spec), the few lines that an operator writes, into the model that every play of this collection reads.
  - Names, UUIDs, MACs, addresses, BMC addresses and disk serial numbers follow from the specification alone.
    The same specification always gives the same model, on any machine.
  - The model holds no secret.
positional: _input, hypervisors
options:
  _input:
    description:
      - The specification. Its keys are described in C(docs/lab_spec.md) of this collection.
    type: dict
    required: true
  hypervisors:
    description:
      - The hosts that carry the lab, by inventory name. C(lab_spec.hypervisors) need not name them then.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show the addresses of the nodes
  ansible.builtin.debug:
    msg: "{{ dict(lab.nodes | map(attribute='name') | zip(lab.nodes | map(attribute='ips'))) }}"
  vars:
    lab: "{{ {'name': 'ha', 'nodes': {'workers': {'count': 2}}} | nometal.ipi.lab_model }}"
"""

RETURN = r"""
_value:
  description:
    - The model, made of plain dictionaries, lists, texts, numbers and booleans.
    - Among its keys are V(domain), V(networks), V(vips), V(bootstrap), V(nodes), V(bmc), V(install) and V(totals).
  type: dict
"""

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model


def _lab_model(lab_spec: object, hypervisors: Sequence[str] = ()) -> dict[str, Any]:
    try:
        return lab_model(lab_spec, hypervisors)
    except LabSpecError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"lab_model": _lab_model}
