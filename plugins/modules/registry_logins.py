#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: registry_logins
short_description: Check that registries accept the logins of a pull secret
version_added: 0.2.0
description:
  - Asks each registry of a pull secret, from this host, whether it accepts its login, and fails if one refuses it.
    Otherwise the bootstrap VM finds out, half an hour later. Changes nothing.
  - A registry that is not reachable causes a warning only, since a lab without internet access pulls from a mirror.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
options:
  pull_secret:
    description: Logins of registries, JSON with C(auths) in it.
    type: raw
    required: true
  environment:
    description: Environment of the installer, of which the proxies count. A mapping, or JSON of one.
    type: raw
    default: {}
"""

EXAMPLES = r"""
- name: Check the pull secret
  nometal.ipi.registry_logins:
    pull_secret: "{{ lookup('ansible.builtin.file', '~/pull-secret.json') }}"
"""

RETURN = r"""
accepted:
  description: Registries that accept the login.
  returned: success
  type: list
  elements: str
  sample: [quay.io, registry.redhat.io]
without_answer:
  description: Registries that are not reachable from this host, each with the reason.
  returned: success
  type: dict
  sample: {registry.connect.redhat.com: Connection refused}
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.job_secrets import mapping_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.registries import Answer, check
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "pull_secret": {"type": "raw", "required": True, "no_log": True},
    "environment": {"type": "raw", "default": {}, "no_log": True},
}


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    environment = {name: str(value) for name, value in mapping_of("environment", params["environment"]).items()}
    logins = check(params["pull_secret"], environment)
    refused = [f"{login.registry}: {login.why}" for login in logins if login.answer is Answer.REFUSED]
    if refused:
        raise OperatorError(
            f"The pull secret is refused: {'; '.join(refused)}. Download it anew, or remove the registries that the "
            "lab does not use."
        )
    unreachable = {login.registry: login.why for login in logins if login.answer is Answer.UNREACHABLE}
    return {
        "changed": False,
        "accepted": [login.registry for login in logins if login.answer is Answer.ACCEPTED],
        "without_answer": unreachable,
        "warnings": [f"{registry} is not reachable: {why}" for registry, why in unreachable.items()],
    }


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
