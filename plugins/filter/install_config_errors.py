# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: install_config_errors
short_description: What is wrong with the install-config of a lab
version_added: 0.1.0
author:
  - nometal.ipi maintainers (@nometal)
description:
  - Takes what P(nometal.ipi.install_config#filter) takes, and returns its errors instead of failing with them.
  - Keys that are unknown here, of a release that is newer than all that are known here, are warned about.
positional: _input, version
options:
  _input:
    description:
      - The model of the lab, as P(nometal.ipi.lab_model#filter) makes it.
    type: dict
    required: true
  version:
    description:
      - The release of OpenShift, instead of that of C(lab_spec.install).
    type: str
  ssh_key:
    description:
      - The public SSH key.
    type: str
  trust_bundle:
    description:
      - Certificates that the cluster is to trust, in PEM.
    type: str
"""

EXAMPLES = r"""
- name: Stop if the install-config would be refused
  ansible.builtin.assert:
    that: lab | nometal.ipi.install_config_errors | length == 0
    fail_msg: "{{ lab | nometal.ipi.install_config_errors | join('\n') }}"
"""

RETURN = r"""
_value:
  description:
    - The errors, one text each; empty if there are none.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible.utils.display import Display

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import install_config, warnings
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import normalize


def _install_config_errors(
    lab: object, version: str | None = None, ssh_key: str | None = None, trust_bundle: str | None = None
) -> list[str]:
    texts = normalize({"ssh_key": ssh_key, "trust_bundle": trust_bundle}, "")
    model, release = normalize(lab, "lab"), normalize(version, "version")
    try:
        config = install_config(model, release, **texts)
    except OperatorError as error:
        return [str(error)]
    for warning in warnings(model, config, release):
        Display().warning(warning)
    return []


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"install_config_errors": _install_config_errors}
