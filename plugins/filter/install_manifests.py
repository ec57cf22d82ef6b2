# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: install_manifests
short_description: The manifests that a lab wants beside the installer's own
version_added: 0.1.0
author:
  - nometal.ipi maintainers (@nometal)
description:
  - Gives manifests for the directory C(manifests) of the installer.
  - A lab without workers gets one replica of the default ingress controller.
  - A lab whose disk is slow gets the patient profile of etcd, from release 4.16 on.
positional: _input, slow_disk, version
options:
  _input:
    description:
      - The model of a lab, as the filter P(nometal.ipi.lab_model#filter) gives it.
    type: dict
    required: true
  slow_disk:
    description:
      - Whether the host's disk is too slow for etcd's usual timers.
    type: bool
    default: false
  version:
    description:
      - The release to be installed, such as V(4.20.3), or a channel. By default that of the model.
    type: str
"""

EXAMPLES = r"""
- name: Show the manifests of a small lab on a slow disk
  ansible.builtin.debug:
    msg: "{{ lab | nometal.ipi.install_manifests(slow_disk=true) }}"
  vars:
    lab: "{{ {'name': 'compact', 'install': {'version': 'stable-4.20'}} | nometal.ipi.lab_model }}"
"""

RETURN = r"""
_value:
  description:
    - The manifests by names of files. Empty when the lab wants none.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.manifests import install_manifests
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import normalize


def _install_manifests(lab: object, slow_disk: bool = False, version: str | None = None) -> dict[str, Any]:
    try:
        return install_manifests(
            normalize(lab, "lab"), slow_disk=bool(slow_disk), version=normalize(version, "version")
        )
    except OperatorError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"install_manifests": _install_manifests}
