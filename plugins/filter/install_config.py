# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: install_config
short_description: The configuration of the installer for a lab
version_added: 0.1.0
author:
  - nometal.ipi maintainers (@nometal)
description:
  - Turns the model of a lab, as the filter P(nometal.ipi.lab_model#filter) gives it, into the content of
    C(install-config.yaml) for the platform baremetal, with the keys that the release knows and no other.
  - C(lab_spec.install.config) is merged into it last. Lists replace, and V(null) removes a key.
  - What the installer would refuse is refused here, and so is what it does not check but would stumble over. Unknown
    keys are not refused for a release that is newer than all that are known here.
  - The result holds no secret. The pull secret and the logins of the BMCs are put in on the managed host.
positional: _input, version
options:
  _input:
    description:
      - The model.
    type: dict
    required: true
  version:
    description:
      - The release to be installed, such as V(4.20.3), or a channel. By default that of the model.
    type: str
  ssh_key:
    description:
      - The public key that may log in to the nodes; several on lines of their own.
    type: str
  bmc_ca:
    description:
      - The CA certificate of the BMC service, in PEM. Without it, and before release 4.21, which is the first that can
        be told of one, the certificate of the service is not verified.
    type: str
  trust_bundle:
    description:
      - Further CA certificates that the nodes trust, in PEM.
    type: str
"""

EXAMPLES = r"""
- name: Show what the installer would be given
  ansible.builtin.debug:
    msg: "{{ lab | nometal.ipi.install_config('4.20.3') | to_nice_yaml }}"
  vars:
    lab: "{{ {'name': 'compact', 'install': {'version': 'stable-4.20'}} | nometal.ipi.lab_model }}"
"""

RETURN = r"""
_value:
  description:
    - The content of C(install-config.yaml) without its secrets.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import install_config
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import normalize


def _install_config(
    lab: object,
    version: str | None = None,
    ssh_key: str | None = None,
    bmc_ca: str | None = None,
    trust_bundle: str | None = None,
) -> dict[str, Any]:
    texts = normalize({"ssh_key": ssh_key, "bmc_ca": bmc_ca, "trust_bundle": trust_bundle}, "")
    try:
        return install_config(normalize(lab, "lab"), normalize(version, "version"), **texts)
    except OperatorError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"install_config": _install_config}
