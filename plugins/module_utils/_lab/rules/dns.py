# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about DNS names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_DOMAIN
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.dns import domain_of, full_name, own_names
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab

LONGEST_CLUSTER_HOST = "oauth-openshift-openshift-authentication.apps."
SERVICE_NAME = r"_[-a-z0-9]+\._(tcp|udp|sctp)(\..+)?"


def domain(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    longest = LONGEST_DOMAIN - len(LONGEST_CLUSTER_HOST)
    if len(domain_of(spec)) > longest:
        text = f"the cluster's domain, <name>.<base_domain>, must have at most {longest} characters"
        yield Finding("dns.domain-too-long", "base_domain", f"{text} {got(len(domain_of(spec)))}")


def forwarders(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    gateways = [declared.gateway_of(spec, net) for net in declared.machine_networks(spec)]
    for item in spec.machine_network.dns.forwarders:
        if item in gateways:
            text = must_be("other servers than the lab's own, which would ask itself", item)
            yield Finding("dns.forwards-to-itself", "machine_network.dns.forwarders", text)


def records(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    taken = own_names(spec, lab.nodes)
    for name, record in spec.machine_network.dns.records.items():
        path = f"machine_network.dns.records.{name}"
        if record.addresses and full_name(spec, name) in taken:
            yield Finding("dns.name-used", path, "already used by the lab itself: choose another name")
        if record.srv and not re.fullmatch(SERVICE_NAME, name):
            text = f"needs a record name such as _ldap._tcp.example.test {got(name)}"
            yield Finding("dns.service-name", f"{path}.srv", text)
        if name.startswith("*.") and (record.srv or record.txt):
            text = "must have addresses only: txt and srv need a name without *"
            yield Finding("dns.wildcard", path, text)
