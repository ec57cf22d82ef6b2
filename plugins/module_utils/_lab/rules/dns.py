# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import LONGEST_DOMAIN
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import pinned
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.dns import domain_of, full_name, own_names
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.draft import Draft

LONGEST_CLUSTER_HOST = "oauth-openshift-openshift-authentication.apps."
SERVICE_NAME = r"_[-a-z0-9]+\._(tcp|udp|sctp)(\..+)?"


def domain(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    longest = LONGEST_DOMAIN - len(LONGEST_CLUSTER_HOST)
    if len(domain_of(spec)) > longest:
        wrong = f"makes the cluster's domain {len(domain_of(spec))} characters long"
        yield Problem("base_domain", f"{wrong}; {longest} at most leave room for the names in it")


def forwarders(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    gateways = [pinned.gateway_of(spec, net) for net in pinned.machine_networks(spec)]
    for item in spec.machine_network.dns.forwarders:
        if item in gateways:
            wrong = f"holds {item}, the lab's own DNS server, which would ask itself"
            yield Problem("machine_network.dns.forwarders", f"{wrong}; other servers are right")


def records(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    taken = own_names(spec, lab.nodes)
    for name, record in spec.machine_network.dns.records.items():
        path = f"machine_network.dns.records.{name}"
        if record.addresses and full_name(spec, name) in taken:
            yield Problem(path, "is a name that the lab gives to its own; another one is right")
        if record.srv and not re.fullmatch(SERVICE_NAME, name):
            yield Problem(f"{path}.srv", f"stands at {name}; a name such as _ldap._tcp.example.test is right")
        if name.startswith("*.") and (record.srv or record.txt):
            yield Problem(path, "begins with *, which is for addresses alone; txt and srv need a name of their own")
