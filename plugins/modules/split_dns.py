#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: split_dns
short_description: The host asks a lab's name servers for the lab's names
version_added: 0.1.0
description:
  - Has the host itself ask the name servers of a lab for the names of the lab, and for no others, by the means that fit
    what the host asks first. All other names are asked for where they were before.
  - Where C(/etc/resolv.conf) leads to systemd-resolved, the lab's link gets DNS settings of its own, again whenever
    its network starts.
    systemd-resolved goes by them while the link has carrier, that is while a veth pair or a VM is on the bridge.
  - Where it leads to the dnsmasq that NetworkManager runs, that gets a file in C(/etc/NetworkManager/dnsmasq.d).
  - Anywhere else C(/etc/resolv.conf) itself is the means, in which no name server can be given for some names only.
    A small dnsmasq on 127.78.77.53 sees to the split, and one line puts it before the other name servers,
    which stay as they are.
    Both are there only while the network of a lab is up, and all labs share them. Under systemd the line is put back
    when DHCP, NetworkManager or resolvconf write the file anew.
  - Name servers that libvirt runs for its networks go by C(/etc/resolv.conf) too, and so in this last case ask the
    small dnsmasq for what they do not know. So guests of one lab can see the names of the other labs on their host,
    and a network must answer all names below its own domain and all its addresses itself (C(localOnly), C(localPtr)).
    The small dnsmasq logs once at its start that it does not use itself, which is as it should be.
  - A name server of the user's own on the host must not take its upstream servers from C(/etc/resolv.conf), or it is
    passed by while a lab is up, since the two would ask each other for ever.
  - What is to be there whenever the network starts is done by the network hook, which M(nometal.ipi.libvirt_service)
    installs.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  owner:
    description: Name of the lab.
    type: str
    required: true
  link:
    description:
      - Bridge of the lab's network, by a name of letters, digits, C(_), C(.) and C(-), 15 characters at most.
      - As long as it is not there, the lab's servers are not asked.
      - Required with O(state=present). What is removed is known by O(owner).
    type: str
  domains:
    description:
      - Domains of the lab, and reverse zones if they are not those of O(subnets). All names below are its own.
      - No other lab on the host can have the same one.
    type: list
    elements: str
    default: []
  subnets:
    description:
      - Subnets of the lab, whose addresses are looked up at its servers too.
      - Reverse zones end at the dots, so labs on one host cannot share a /24 (for IPv6, a /124).
    type: list
    elements: str
    default: []
  servers:
    description:
      - Addresses of the lab's name servers, in the lab's network. Loopback, multicast, link-local and unspecified
        addresses are refused.
      - Required with O(state=present), as is one of O(domains) and O(subnets).
    type: list
    elements: str
    default: []
  names:
    description:
      - Names that the lab's name servers know, such as that of the cluster's API.
      - The host is asked for them as its programs ask. Where it does not find the addresses that the lab's name
        servers give, the resolver is set up anew; the module fails if that does not help.
      - They are not asked for while O(link) is down, nor from systemd-resolved while it has no carrier.
    type: list
    elements: str
    default: []
  state:
    description: Whether the host is to know the lab's names, or to be as it was before.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Resolve the lab's names on its host
  nometal.ipi.split_dns:
    owner: demo
    link: nm-demo
    domains: [demo.lab.example.test]
    subnets: [192.168.126.0/24]
    servers: [192.168.126.1]
    names: [api.demo.lab.example.test]

- name: Leave the host's resolver as it was
  nometal.ipi.split_dns:
    owner: demo
    link: nm-demo
    state: absent
"""

RETURN = r"""
means:
  description: By what the host is told where to ask, V(systemd-resolved), V(NetworkManager) or V(resolv.conf).
  returned: when O(state=present)
  type: str
  sample: systemd-resolved
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write systemd-resolved, apply systemd-resolved]
"""

import re
from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    OperatorError,
    noting,
    operator_errors,
    refuse_all,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Reconciler
from ansible_collections.nometal.ipi.plugins.module_utils._core.zones import domain, reverse_zones, server
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import lookup
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.choice import choose, measure
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.network_manager import NetworkManager
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.resolv_conf import ResolvConf
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import (
    HostResolver,
    Lab,
    SplitDnsPort,
    plan,
    refuse_taken_domains,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.systemd_resolved import SystemdResolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.choice import Resolution
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Means

    T = TypeVar("T")

ARGUMENTS = {
    "owner": {"type": "str", "required": True},
    "link": {"type": "str"},
    "domains": {"type": "list", "elements": "str", "default": []},
    "subnets": {"type": "list", "elements": "str", "default": []},
    "servers": {"type": "list", "elements": "str", "default": []},
    "names": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
MEANS: dict[str, Means] = {
    SystemdResolved.name: SystemdResolved(),
    NetworkManager.name: NetworkManager(),
    ResolvConf.name: ResolvConf(),
}


def lab_from(params: dict[str, Any]) -> Lab:
    """All that is wrong is said at once. To remove a lab, only its name is needed."""
    problems: list[str] = []
    present = params["state"] == "present"
    _sound(owner, [params["owner"]], problems)
    _sound(link, [params["link"]] if params["link"] is not None else [], problems)
    domains = _sound(domain, params["domains"] if present else [], problems)
    zones = _sound(reverse_zones, params["subnets"] if present else [], problems)
    servers = _sound(server, params["servers"] if present else [], problems)
    names = _sound(domain, params["names"] if present else [], problems)
    if present and not (params["servers"] and (params["domains"] or params["subnets"])):
        problems.append(f"Of lab {params['owner']}, servers and at least one of domains and subnets must be given.")
    refuse_all(problems)
    return Lab(
        owner=params["owner"],
        link=params["link"] or "",
        domains=tuple(dict.fromkeys([*domains, *chain.from_iterable(zones)])),
        servers=tuple(dict.fromkeys(servers)),
        names=tuple(dict.fromkeys(names)),
    )


def _sound(read: Callable[[str], T], texts: Iterable[str], problems: list[str]) -> list[T]:
    found = []
    for text in texts:
        with noting(problems):
            found.append(read(text))
    return found


def owner(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", text):
        raise OperatorError(f"owner: {text!r} is no name of a lab: small letters, digits and hyphens.")
    return text


def link(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", text):
        raise OperatorError(
            f"link: {text!r} is no name of an interface: letters, digits, `_`, `.` and `-`, 15 characters at most."
        )
    return text


def means_for(host: Resolution) -> Means:
    means = MEANS[choose(host)]
    if isinstance(means, ResolvConf):
        means.refuse_conflicts()
    return means


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    lab = lab_from(params)
    reconciler = Reconciler(lambda: nullcontext(SplitDnsPort(lab, MEANS)), plan)
    if params["state"] == "absent":
        return reconciler.run(HostResolver({}), check_mode=check_mode)
    problems: list[str] = []
    with noting(problems):
        refuse_taken_domains(lab, chain.from_iterable(means.held() for means in MEANS.values()))
    with noting(problems):
        means = means_for(measure())
    refuse_all(problems)
    desired = HostResolver({means.name: means.wanted(lab)})
    result = reconciler.run(desired, check_mode=check_mode)
    if result["changed"] and not check_mode:
        lookup.wait_until_known(lab, means.evidence(lab))
    return {**result, "means": means.name}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS, required_if=[("state", "present", ["link"])], supports_check_mode=True
    )
    with operator_errors(module):
        module.exit_json(**run(module.params, check_mode=module.check_mode))


if __name__ == "__main__":
    main()
