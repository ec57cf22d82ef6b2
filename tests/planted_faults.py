"""Plant faults in a copy of the checkout, one at a time, and see that tests fail: `make test-faults`.

`--only NAME` plants one, `--part unit` those that need neither root nor libvirt, and `--root DIRECTORY` does it to
another checkout, to compare. `unit/bench/test_planted_faults.py` sees to it that each still applies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 300
"""For one test, which may never end by a fault."""
PASSED, FAILED = 0, 1
FIRST_TIME = 1_000_000_000
NOT_FOUND = (4, 5)
"""pytest's exit codes where a selection selects nothing."""
UTILS = "plugins/module_utils"
BMC = "bmc/nometal_bmc"
MODULES = "tests/integration/modules"


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    line: str
    """Text that is there once, whole lines or a part of one."""
    instead: str
    tests: str
    """The selection that has to fail."""

    @property
    def part(self) -> str:
        return self.tests.partition("tests/")[2].split("/")[0]


RULES = (
    Fault(
        "a-pool-of-one-address",
        f"{UTILS}/_lab/rules/addresses.py",
        "SMALLEST_POOL = 2 ",
        "SMALLEST_POOL = 1 ",
        "tests/unit/lab/test_refusals.py",
    ),
    Fault(
        "a-machine-at-the-broadcast-address",
        f"{UTILS}/_lab/rules/addresses.py",
        "is_broadcast = item == net.broadcast_address and item.version == V4",
        "is_broadcast = item == net.broadcast_address and item.version == V6",
        "tests/unit/lab/test_refusals.py",
    ),
    Fault(
        "fewer-vips-for-the-api",
        f"{UTILS}/_lab/rules/addresses.py",
        "if own.api and own.ingress and len(own.api) != len(own.ingress):",
        "if own.api and own.ingress and len(own.api) > len(own.ingress):",
        "tests/unit/lab/test_refusals.py",
    ),
    Fault(
        "fencing-of-three",
        f"{UTILS}/_lab/rules/install.py",
        "elif count > PAIR and spec.nodes.control_plane.fencing:",
        "elif count < PAIR and spec.nodes.control_plane.fencing:",
        "tests/unit/lab/test_refusals.py",
    ),
    Fault(
        "clients-of-every-family",
        f"{UTILS}/_lab/rules/bmc.py",
        "elif network.version not in families:",
        "elif network.version not in (4, 6):",
        "tests/unit/lab/test_refusals.py",
    ),
    Fault(
        "ipmi-ports-by-role",
        f"{UTILS}/_lab/derive/node_list.py",
        "bmc_port(spec) + (number if one_port_each else 0)",
        "bmc_port(spec) + (index if one_port_each else 0)",
        "tests/unit/lab/test_model.py",
    ),
    Fault(
        "an-interface-name-too-long",
        f"{UTILS}/_lab/identity.py",
        "left = LONGEST_INTERFACE_NAME - len(prefix) - len(digest) - 1",
        "left = LONGEST_INTERFACE_NAME - len(prefix) - len(digest)",
        "tests/unit/lab/test_model.py",
    ),
    Fault(
        "an-address-at-the-start-of-a-range",
        f"{UTILS}/_lab/derive/addresses.py",
        "if low <= end and start <= high:",
        "if low < end and start <= high:",
        "tests/unit/lab/test_model.py",
    ),
    Fault(
        "a-directory-within-another-labs",
        f"{UTILS}/_lab/claims.py",
        "return paths[0] in (paths[1], *paths[1].parents) or paths[1] in paths[0].parents",
        "return paths[0] in (paths[1], *paths[1].parents)",
        "tests/unit/lab/test_claims.py",
    ),
    Fault(
        "ranges-that-share-one-address",
        f"{UTILS}/_resources/network/rules.py",
        "return same_family and max(map(int, starts)) <= min(map(int, ends))",
        "return same_family and max(map(int, starts)) < min(map(int, ends))",
        "tests/unit/resources/test_network.py",
    ),
)

PLANS = (
    Fault(
        "a-bridge-that-is-gone-stays-gone",
        f"{UTILS}/_resources/network/state.py",
        'restart = bool(differing) or current.health.bridge == "gone"',
        "restart = bool(differing)",
        "tests/unit/resources/test_network.py",
    ),
    Fault(
        "leases-released-before-the-start",
        f"{UTILS}/_resources/network/state.py",
        'Step("release", leases): not starts and bool(leases),',
        'Step("release", leases): bool(leases),',
        "tests/unit/resources/test_network.py",
    ),
    Fault(
        "a-changed-hook-is-as-good",
        f"{UTILS}/_resources/network/port.py",
        "return text is not None if self._desired is None else text == self._hook_text()",
        "return text is not None",
        "tests/unit/resources/test_network.py",
    ),
    Fault(
        "a-disk-of-another-format-grows",
        f"{UTILS}/_lab/vm.py",
        "return self.format == wanted.format and self.size_bytes <= wanted.size_bytes",
        "return self.size_bytes <= wanted.size_bytes",
        "tests/unit/resources/test_bmh_vm.py",
    ),
    Fault(
        "vms-may-not-swap-macs",
        f"{UTILS}/_resources/vm/conflicts.py",
        "for domain in (domain for domain in host.domains.values() if domain.name not in wanted.vms):",
        "for domain in (domain for domain in host.domains.values() if domain.name != name):",
        "tests/unit/resources/test_bmh_vm.py",
    ),
    Fault(
        "a-vm-without-a-mark-is-taken",
        f"{UTILS}/_resources/vm/conflicts.py",
        "if domain and domain.mark.owner != owner:",
        "if domain and domain.mark.owner and domain.mark.owner != owner:",
        "tests/unit/resources/test_bmh_vm.py",
    ),
    Fault(
        "a-new-pair-stays-down",
        f"{UTILS}/_resources/veth/state.py",
        "there = {end.name: replace(end, bridge=None, up=False) for end in desired.ends}",
        "there = {end.name: replace(end, bridge=None) for end in desired.ends}",
        "tests/unit/resources/test_veth_pair.py",
    ),
    Fault(
        "a-bridge-of-others-taken-for-unfinished",
        f"{UTILS}/_observe/wiring.py",
        "cut_short = not link.alias and not link.up and link.forward_delay == 0",
        "cut_short = not link.alias and link.forward_delay == 0",
        "tests/unit/resources/test_veth_pair.py",
    ),
    Fault(
        "a-pools-directory-is-not-made-anew",
        f"{UTILS}/_resources/storage_pool/state.py",
        '"build": current is None or not current.directory,',
        '"build": current is None,',
        "tests/unit/resources/test_storage_pool.py",
    ),
    Fault(
        "a-pool-known-by-its-name",
        f"{UTILS}/_resources/storage_pool/port.py",
        "return next((pool for pool in pools if pool.UUIDString() == self._desired.uuid), None)",
        "return next((pool for pool in pools if pool.name() == self._desired.name), None)  # by name",
        "tests/unit/resources/test_storage_pool.py",
    ),
    Fault(
        "strangers-are-let-into-a-nat",
        f"{UTILS}/_resources/firewall/rules.py",
        "only_answers = network.forward == Forward.NAT",
        "only_answers = network.forward == Forward.ROUTE",
        "tests/unit/resources/test_lab_firewall.py",
    ),
    Fault(
        "ports-between-two-are-open",
        f"{UTILS}/_resources/firewall/rules.py",
        "merged[-1].last == port - 1:",
        "merged[-1].last <= port - 1:",
        "tests/unit/resources/test_lab_firewall.py",
    ),
    Fault(
        "removed-chains-are-not-made-again",
        f"{UTILS}/_resources/firewall/port.py",
        '*([Step("run", "hook entry")] if set(desired.chains) - staying else []),',
        '*([Step("run", "hook entry")] if set(desired.chains) - set(current.chains) else []),',
        "tests/unit/resources/test_lab_firewall.py",
    ),
    Fault(
        "reverse-zones-rounded-down",
        f"{UTILS}/_core/zones.py",
        "prefix = -(-subnet.prefixlen // bits) * bits",
        "prefix = subnet.prefixlen // bits * bits",
        "tests/unit/resources/test_split_dns.py",
    ),
    Fault(
        "resolved-by-nsswitch-is-refused",
        f"{UTILS}/_resources/resolver/choice.py",
        "if not (by_stub or host.nss_resolve):",
        "if not by_stub:",
        "tests/unit/resources/test_resolver_choice.py",
    ),
    Fault(
        "a-resolver-that-forgot-is-not-told-again",
        f"{UTILS}/_resources/resolver/state.py",
        "if not (as_written and found is not None and found.in_force):",
        "if not as_written:",
        "tests/unit/resources/test_split_dns.py",
    ),
)

ON_THE_HOST = (
    Fault(
        "any-snapshot-is-one-of-the-checkpoint",
        f"{UTILS}/_resources/checkpoint/conflicts.py",
        "if tag_of(checkpoint) not in now.snapshots:",
        "if not now.snapshots:",
        "tests/unit/resources/test_checkpoint.py",
    ),
    Fault(
        "nodes-stay-paused-after-a-kill",
        f"{UTILS}/_resources/checkpoint/state.py",
        '*([Step("resume", paused(now))] if paused(now) else []),',
        "",
        "tests/unit/resources/test_checkpoint.py",
    ),
    Fault(
        "a-lock-whose-file-is-gone",
        f"{UTILS}/_core/lock.py",
        "if has_lock and _is_still(path, descriptor):",
        "if has_lock:",
        "tests/unit/core/test_lock.py",
    ),
    Fault(
        "a-live-connection-does-not-count",
        f"{UTILS}/_core/lab_lock.py",
        "if record.connection is None or seen.has_connection or record.controller.numbers_processes_as(run):",
        "if record.connection is None or record.controller.numbers_processes_as(run):",
        "tests/unit/core/test_lab_lock.py",
    ),
    Fault(
        "anybody-releases-the-lab",
        f"{UTILS}/_core/lab_lock.py",
        "if record is None or record.controller != run:",
        "if record is None:",
        "tests/unit/core/test_lab_lock.py",
    ),
    Fault(
        "the-last-note-on-the-host-counts",
        f"{UTILS}/_core/host_baseline.py",
        "memory[topic] = {**values, **memory.get(topic, {})}",
        "memory[topic] = {**memory.get(topic, {}), **values}",
        "tests/unit/core/test_host_baseline.py",
    ),
    Fault(
        "a-hidden-sysctl-file-counts",
        f"{UTILS}/_observe/forwarding.py",
        "by_name.setdefault(file.name, file)",
        "by_name[file.name] = file",
        "tests/unit/resources/test_forwarding.py",
    ),
    Fault(
        "a-link-is-followed-and-its-target-removed",
        f"{UTILS}/_core/removal.py",
        "os.open(path.name, DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)",
        "os.open(path.name, DIRECTORY, dir_fd=parent)",
        "tests/unit/core/test_removal.py",
    ),
)

IN_THE_BMC = (
    Fault(
        "any-account-commands-any-system",
        f"{BMC}/front/guard.py",
        "if system is None or not account.commands(system):",
        "if system is None:",
        "bmc/tests/unit/test_guard.py",
    ),
    Fault(
        "one-guess-more",
        f"{BMC}/throttle.py",
        "if failures >= FREE_FAILURES else 0.0",
        "if failures > FREE_FAILURES else 0.0",
        "bmc/tests/unit/test_logins.py",
    ),
    Fault(
        "every-ipv6-address-counts-anew",
        f"{BMC}/sources.py",
        "IPV6_NETWORK_BITS = 64",
        "IPV6_NETWORK_BITS = 128",
        "bmc/tests/unit/test_logins.py",
    ),
    Fault(
        "strangers-take-every-connection",
        f"{BMC}/front/crowd.py",
        "if self._count > MOST_CONNECTIONS:",
        "if self._count > 2 * MOST_CONNECTIONS:",
        "bmc/tests/unit/test_crowd.py",
    ),
    Fault(
        "images-come-from-loopback",
        f"{BMC}/media/reach.py",
        "not (self.is_own or _is_special(address))",
        "not self.is_own",
        "bmc/tests/unit/test_reach.py",
    ),
    Fault(
        "a-session-outlives-its-password",
        f"{BMC}/front/sessions.py",
        "unchanged = account is not None and account.password == session.account.password",
        "unchanged = account is not None",
        "bmc/tests/unit/test_logins.py",
    ),
    Fault(
        "a-changed-password-is-remembered",
        f"{BMC}/front/credentials.py",
        "words = (account.name, str(account.password), password)",
        "words = (account.name, password)",
        "bmc/tests/unit/test_logins.py",
    ),
    Fault(
        "a-fault-on-purpose-comes-a-request-early",
        f"{BMC}/faults/decisions.py",
        "due = self._asked > self._rule.after",
        "due = self._asked >= self._rule.after",
        "bmc/tests/unit/test_faults.py",
    ),
    Fault(
        "requests-about-one-node-decide-about-another",
        f"{BMC}/faults/decisions.py",
        "if (number, node) not in self._streams:",
        "node = ''\n        if (number, node) not in self._streams:",
        "bmc/tests/unit/test_faults.py",
    ),
    Fault(
        "the-operator-meets-faults",
        f"{BMC}/faults/requests.py",
        "if account is not None and account.systems is None:",
        "if account is not None and account.systems == ():",
        "bmc/tests/integration/test_faults.py",
    ),
    Fault(
        "a-disk-added-meanwhile-boots-first",
        f"{BMC}/machine/boot.py",
        "int(places.get(_key(device), 10**6))",
        "int(places.get(_key(device), 0))",
        "bmc/tests/unit/test_boot.py",
    ),
    Fault(
        "half-an-image-is-inserted",
        f"{BMC}/media/images.py",
        "if blocks * block_size > size:",
        "if blocks > size:",
        "bmc/tests/unit/test_images.py",
    ),
    Fault(
        "an-ipmi-password-counted-in-characters",
        f"{BMC}/config/reading.py",
        "if not 0 < len(text.encode()) <= longest:",
        "if not 0 < len(text) <= longest:",
        "bmc/tests/unit/test_config.py",
    ),
    Fault(
        "any-session-may-do-anything-by-ipmi",
        f"{BMC}/ipmi/commands.py",
        "if request.level < command.level:",
        "if not request.level and command.level:",
        "bmc/tests/unit/test_ipmi.py",
    ),
    Fault(
        "guesses-that-are-not-finished-are-free",
        f"{BMC}/ipmi/logins.py",
        "if self._unfinished.pop(login, None) is not None:",
        "if self._unfinished.pop(login, None) is None:",
        "bmc/tests/unit/test_ipmi.py",
    ),
    Fault(
        "a-weak-integrity-algorithm-is-taken",
        f"{BMC}/ipmi/suites.py",
        "if all(wish[3] == 0 or wish[4] & 0x3F == number for wish, number in zip(wishes, suite.algorithms)):",
        "if any(wish[3] == 0 or wish[4] & 0x3F == number for wish, number in zip(wishes, suite.algorithms)):",
        "bmc/tests/unit/test_ipmi.py",
    ),
)

JUDGEMENTS = (
    Fault(
        "memory-of-own-vms-is-not-free",
        f"{UTILS}/_checks/doctor/compute.py",
        "if need > free:",
        "if need > memory.available:",
        "tests/unit/doctor/test_judgements.py",
    ),
    Fault(
        "the-installers-own-files-count-twice",
        f"{UTILS}/_checks/doctor/storage.py",
        "others = max(0, INSTALLER_LEAST - storage.installer.used)",
        "others = INSTALLER_LEAST",
        "tests/unit/doctor/test_judgements.py",
    ),
    Fault(
        "half-of-everything-is-no-default-route",
        f"{UTILS}/_checks/doctor/networks.py",
        "if route.gateway and DEFAULT_IN_HALVES < route.subnet.prefixlen < subnet.prefixlen",
        "if route.gateway and DEFAULT_IN_HALVES <= route.subnet.prefixlen < subnet.prefixlen",
        "tests/unit/doctor/test_judgements.py",
    ),
    Fault(
        "a-port-of-nobody-is-ours",
        f"{UTILS}/_checks/doctor/ports.py",
        "return bool(busy.holders) and all(",
        "return all(",
        "tests/unit/doctor/test_judgements.py",
    ),
    Fault(
        "a-pool-is-full-when-it-is-not",
        f"{UTILS}/_checks/rehearsal/causes_network.py",
        "if len(taken) >= size:",
        "if len(taken) > size:",
        "tests/unit/rehearsal/test_causes.py",
    ),
    Fault(
        "a-second-dhcp-server-is-not-suspected",
        f"{UTILS}/_checks/rehearsal/causes_network.py",
        'Cause("dhcp.foreign-lease", ADDRESS, second_server, _second_server, OFF_THE_BRIDGE),',
        "",
        "tests/unit/rehearsal/test_causes.py tests/unit/rehearsal/test_recorded.py",
    ),
    Fault(
        "a-medium-is-asked-of-who-boots-by-network",
        f"{UTILS}/_checks/rehearsal/causes_node.py",
        'wanted = "interface" if by_network else "cdrom" if from_medium else "disk"',
        'wanted = "cdrom" if from_medium else "disk"',
        "tests/unit/rehearsal/test_causes.py tests/unit/rehearsal/test_recorded.py",
    ),
    Fault(
        "a-node-that-never-came-up-is-missed",
        f"{UTILS}/_checks/rehearsal/judge_node.py",
        "if finding and address not in never_up",
        "if finding",
        "tests/unit/rehearsal/test_judging.py",
    ),
    Fault(
        "a-second-dhcp-server-of-ipv6",
        f"{UTILS}/_checks/rehearsal/judge_bootstrap.py",
        'several6 = card["servers6"][1:]',
        'several6 = card["servers6"][2:]',
        "tests/unit/rehearsal/test_judging.py",
    ),
)

INSTALLATION = (
    Fault(
        "progress-does-not-count",
        f"{UTILS}/_cluster/progress/watch.py",
        "still = now - max(progress.since, progress.changed)",
        "still = now - progress.since",
        "tests/unit/cluster/test_stalls.py",
    ),
    Fault(
        "a-host-in-trouble-is-slow-too",
        f"{UTILS}/_cluster/progress/watch.py",
        "if limit is not None and still > limit * patience and not host.trouble:",
        "if limit is not None and still > limit * patience:",
        "tests/unit/cluster/test_stalls.py",
    ),
    Fault(
        "to-be-switched-on-is-to-speak",
        f"{UTILS}/_cluster/diagnosis/nodes.py",
        "return self.spoke_at < self.on_since + AT_POWER_ON and not self.packets",
        "return self.spoke_at < self.on_since and not self.packets",
        "tests/unit/cluster/test_stalls.py",
    ),
    Fault(
        "the-bootstrap-vm-is-taken-for-a-stranger",
        f"{UTILS}/_cluster/diagnosis/diagnose.py",
        "if is_known and mac not in own}",
        "if mac not in own}",
        "tests/unit/cluster/test_diagnosis.py",
    ),
    Fault(
        "nodes-are-off-too-early",
        f"{UTILS}/_cluster/diagnosis/of_nodes.py",
        "if not off or not (progress.bootstrap_complete or progress.bootstrap_destroyed):",
        "if not off:",
        "tests/unit/cluster/test_diagnosis.py",
    ),
    Fault(
        "a-former-installation-has-completed",
        f"{UTILS}/_cluster/progress/reading.py",
        "completed = self._completed_at > 0 and self._completed_at >= int(seen.started or 0)",
        "completed = self._completed_at > 0",
        "tests/unit/cluster/test_watch.py",
    ),
    Fault(
        "a-secret-in-quoted-json",
        f"{UTILS}/_cluster/bundle/redact.py",
        "            yield json.dumps(json.dumps(part)[1:-1])[1:-1]\n",
        "",
        "tests/unit/cluster/test_redact.py",
    ),
    Fault(
        "completed-although-it-failed",
        f"{UTILS}/_cluster/run/decision.py",
        "if facts.complete and (facts.succeeded or facts.exit_code is None):",
        "if facts.complete:",
        "tests/unit/cluster/test_decision.py",
    ),
    Fault(
        "a-bootstrap-vm-that-is-off-stays",
        f"{UTILS}/_cluster/run/decision.py",
        "return Decision(RESUME, why, (WAIT_FOR_INSTALL,), removes_bootstrap=True)",
        "return Decision(RESUME, why, (WAIT_FOR_INSTALL,))  # it is off",
        "tests/unit/cluster/test_decision.py",
    ),
    Fault(
        "a-bootstrapper-of-more-groups-is-approved",
        f"{UTILS}/_cluster/power/requests.py",
        "{*asked.request.groups} == GROUPS_OF_BOOTSTRAPPER",
        "{*asked.request.groups} >= GROUPS_OF_BOOTSTRAPPER",
        "tests/unit/cluster/power/test_requests.py",
    ),
    Fault(
        "a-kubelet-serves-addresses-of-others",
        f"{UTILS}/_cluster/power/requests.py",
        "asked.content.ips <= {*asked.ips}",
        "bool(asked.content.ips) or True",
        "tests/unit/cluster/power/test_requests.py",
    ),
    Fault(
        "etcd-loses-its-quorum",
        f"{UTILS}/_cluster/nodes/etcd.py",
        "return len(others) > len(self.members) // 2",
        "return len(others) >= len(self.members) // 2",
        "tests/unit/cluster/test_nodes_control_plane.py",
    ),
    Fault(
        "a-member-of-etcd-is-removed-while-its-node-runs",
        f"{UTILS}/_cluster/nodes/control_plane.py",
        "host.name not in seen.off) or (node and not node.is_silent)",
        "host.name not in seen.off) and (node and not node.is_silent)",
        "tests/unit/cluster/test_nodes_control_plane.py",
    ),
    Fault(
        "a-quorum-guard-of-others-is-switched-on",
        f"{UTILS}/_cluster/nodes/control_plane.py",
        "_etcd(seen).unguarded_by == wanted.lab",
        "not _etcd(seen).is_guarded",
        "tests/unit/cluster/test_nodes_control_plane.py",
    ),
    Fault(
        "the-holder-of-the-api-is-not-the-last",
        f"{UTILS}/_cluster/power/nodes.py",
        "if node.is_control_plane and {*node.macs} & {*holders})",
        "if node.is_control_plane and not {*node.macs})",
        "tests/unit/cluster/power/test_switching.py",
    ),
    Fault(
        "a-stop-that-goes-on-forgets-who-was-on",
        f"{UTILS}/_cluster/power/nodes.py",
        "dict.fromkeys([*self.names(), *names])",
        "dict.fromkeys(names)",
        "tests/unit/cluster/power/test_switching.py",
    ),
    Fault(
        "a-stop-backs-etcd-up-again",
        f"{UTILS}/_cluster/power/stop.py",
        "self.backup is not None and not self.lab.has_begun_to_stop(on)",
        "self.backup is not None",
        "tests/unit/cluster/power/test_stop.py",
    ),
)

BESIDE_LIBVIRT = (
    Fault(
        "leases-of-the-former-subnet-stay",
        f"{UTILS}/_resources/network/port.py",
        "return tuple(sorted(stale if stays else stale.union(outside)))",
        "return tuple(sorted(stale))",
        f"{MODULES}/test_libvirt_bridge_net.py::test_leases_of_a_former_subnet_do_not_keep_a_lab_from_its_new_one",
    ),
    Fault(
        "a-new-bridge-answers",
        f"{UTILS}/_resources/veth/port.py",
        '        kernel.silence(name)\n        kernel.set_link(route, name, state="up")\n',
        '        kernel.set_link(route, name, state="up")\n',
        f"{MODULES}/test_veth_pair.py::test_acceptance",
    ),
    Fault(
        "an-exclusive-list-is-of-all-labs",
        f"{UTILS}/_resources/vm/port.py",
        "if domain.mark.owner == self._request.owner]",
        "if domain.mark.owner]",
        f"{MODULES}/test_bmh_vm.py::test_those_that_are_no_longer_listed_stay_unless_the_list_is_exclusive",
    ),
    Fault(
        "a-disk-is-not-marked",
        f"{UTILS}/_resources/vm/port.py",
        "        volume_marks.note_made_for(self._path(name), owning.known_as)\n",
        "        _ = owning\n",
        f"{MODULES}/test_bmh_vm.py::test_one_that_was_undefined_is_made_again_around_its_disks",
    ),
    Fault(
        "disks-made-for-another-lab-go",
        f"{UTILS}/_observe/disk_users.py",
        'if path.name not in used and maker not in ("", owner):',
        'if path.name in used and maker not in ("", owner):',
        f"{MODULES}/test_storage_pool.py::test_disks_of_others_keep_their_pool",
    ),
    Fault(
        "one-boot-uses-up-the-next-override",
        f"{BMC}/vms/boot.py",
        "if mark == mark_for_once(root):",
        "if mark_for_once(root):",
        "bmc/tests/integration/test_systems_boot.py::"
        "test_an_override_that_comes_right_after_the_boot_of_another_is_for_the_next_boot",
    ),
    Fault(
        "a-login-follows-to-another-server",
        f"{BMC}/media/download.py",
        "login = login if origin(next_url) == origin(url) else None",
        "login = login if origin(next_url)[0] == origin(url)[0] else None",
        "bmc/tests/integration/test_media.py::test_redirects_are_followed_but_logins_stay_with_their_server",
    ),
)

FAULTS = (*RULES, *PLANS, *ON_THE_HOST, *IN_THE_BMC, *JUDGEMENTS, *INSTALLATION, *BESIDE_LIBVIRT)


class DoesNotApplyError(Exception):
    """The checkout has not what the fault replaces, or has it more than once."""


def planted(fault: Fault, text: str) -> str:
    if text.count(fault.line) != 1:
        raise DoesNotApplyError(f"its line is there {text.count(fault.line)} times in {fault.file}")
    return text.replace(fault.line, fault.instead)


@dataclass
class Copy:
    """Of a checkout, as it is in its working tree. Faults are planted here and nowhere else."""

    root: Path
    directory: Path
    _writes: int = 0
    _sound: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        list_files = ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(list_files, check=True, text=True, capture_output=True).stdout.split("\0"):
            source, copy = self.root / name, self.directory / name
            if source.is_symlink() or source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy, follow_symlinks=False)

    @cached_property
    def _environment(self) -> dict[str, str]:
        """Each test compiles only what a fault has changed."""
        return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def outcome(self, fault: Fault) -> str:
        """`caught`, or what else became of it."""
        path = self.directory / fault.file
        try:
            before = path.read_text(encoding="utf-8")
            after = planted(fault, before)
        except (FileNotFoundError, DoesNotApplyError) as error:
            return f"DOES NOT APPLY: {error}"
        tests = self._sound_tests(fault.tests)
        if not tests:
            return f"FAILS WITHOUT IT: {fault.tests}"
        self._write(path, after)
        try:
            code = self._run(tests)
        finally:
            self._write(path, before)
        return {PASSED: "MISSED", FAILED: "caught"}.get(code, f"DOES NOT RUN: pytest has ended with {code}")

    def _sound_tests(self, tests: str) -> str:
        """The selection if it passes, or all unit tests in place of what this checkout has not."""
        there = all((self.directory / name.partition("::")[0]).exists() for name in tests.split())
        for selection in (tests, "tests/unit") if there else ("tests/unit",):
            if selection not in self._sound:
                code = self._run(selection)
                if code in NOT_FOUND:
                    continue
                self._sound[selection] = code == PASSED
            return selection if self._sound[selection] else ""
        return ""

    def _run(self, tests: str) -> int:
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--timeout={SECONDS}"]
        return subprocess.run(
            [*pytest, *tests.split()],
            cwd=self.directory,
            env=self._environment,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode

    def _write(self, path: Path, text: str) -> None:
        """Never with the time of an earlier write: by time and size Python knows whether compiled code is outdated."""
        path.write_text(text, encoding="utf-8")
        self._writes += 1
        os.utime(path, (FIRST_TIME + self._writes, FIRST_TIME + self._writes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--part", choices=["unit", "integration"])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout, this one unless told")
    asked = parser.parse_args()
    faults = [fault for fault in FAULTS if fault.name in (asked.only or [fault.name])]
    faults = [fault for fault in faults if fault.part in (asked.part or fault.part)]
    caught = 0
    with tempfile.TemporaryDirectory(prefix="planted-faults-") as directory:
        copy = Copy(asked.root.resolve(), Path(directory))
        for fault in faults:
            outcome = copy.outcome(fault)
            caught += outcome == "caught"
            print(f"  {fault.name:45} {outcome}", flush=True)  # noqa: T201 - that is what it is for
    print(f"{caught} passed, {len(faults) - caught} failed")  # noqa: T201
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
