# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to do for a lab's installation, from what is known of the last one."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.facts import INFRASTRUCTURE_FAILED, Facts, end_of

FRESH, ATTACH, DONE, RESUME, MUST_RESTART = "fresh", "attach", "done", "resume", "must_restart"

CREATE = "create cluster"
WAIT_FOR_BOOTSTRAP = "wait-for bootstrap-complete"
DESTROY_BOOTSTRAP = "destroy bootstrap"
WAIT_FOR_INSTALL = "wait-for install-complete"

WITHOUT_TERRAFORM = (4, 16)
RESTART = "-e ipi_install_restart=true"
TEARDOWN = "playbooks/teardown.yml -e teardown_scope=cluster"
NOT_RESTARTED = {
    ATTACH: "It is not restarted, because the installer is running.",
    DONE: "A finished cluster is not reinstalled by a restart.",
    RESUME: "It is not restarted, because it seems to be installed.",
}


@dataclass(frozen=True)
class Decision:
    kind: str
    why: str
    commands: tuple[str, ...] = ()
    clears: bool = False
    """What is there has to be removed first."""
    removes_bootstrap: bool = False
    """The bootstrap VM has to be removed first, by us."""


def decide(facts: Facts) -> Decision:
    if facts.running:
        return _attached(facts)
    if facts.complete and (facts.succeeded or facts.exit_code is None):
        return Decision(DONE, "The cluster is installed.")
    if facts.restart and not _may_be_installed(facts):
        return Decision(FRESH, "A restart is asked for. What is there is removed first.", (CREATE,), clears=True)
    if not _made_anything(facts):
        return _fresh(facts)
    if not facts.ran and not facts.infrastructure:
        return _must_restart(
            "A bootstrap VM of this cluster is there, though no installation of it is noted on this host."
        )
    return _continued(facts)


def note_of(facts: Facts, decision: Decision) -> str:
    """What the operator may have expected, and does not happen."""
    if decision.kind not in (ATTACH, DONE, RESUME):
        return ""
    notes = []
    if facts.restart:
        notes.append(NOT_RESTARTED[decision.kind])
    if facts.config_changed:
        notes.append(_config_note(decision))
    if facts.other_version:
        notes.append(_version_note(facts, decision))
    return " ".join([*notes, _way_out(facts, decision)] if notes else [])


def _may_be_installed(facts: Facts) -> bool:
    """Although not everything says so."""
    return facts.ran and facts.has_metadata and (facts.complete or facts.succeeded)


def _attached(facts: Facts) -> Decision:
    if facts.orphan:
        return Decision(ATTACH, "The installer is running, though what had started it was killed.", facts.commands)
    return Decision(ATTACH, "The installer is running.", facts.commands)


def _made_anything(facts: Facts) -> bool:
    begun = facts.infrastructure or facts.waiting or facts.bootstrapped or facts.bootstrap_destroyed or facts.complete
    return begun or facts.succeeded or facts.bootstrap_there or facts.exit_code == INFRASTRUCTURE_FAILED


def _fresh(facts: Facts) -> Decision:
    if facts.nodes_in_use:
        return _must_restart(
            "Nodes run, or have something on their disks, although no installation is noted that came so far: "
            f"{', '.join(facts.nodes_in_use)}. A cluster may be living there."
        )
    why = "Nothing of this cluster is installed yet."
    if facts.ran:
        why = f"{end_of(facts)} It had made nothing yet, so it starts over."
    return Decision(FRESH, why, (CREATE,))


def _continued(facts: Facts) -> Decision:
    end = end_of(facts)
    if facts.complete or facts.succeeded or facts.bootstrap_destroyed or facts.current == WAIT_FOR_INSTALL:
        return _awaited(facts, end)
    if facts.bootstrapped or facts.current == DESTROY_BOOTSTRAP:
        return _without_bootstrap(facts, end)
    if facts.current == WAIT_FOR_BOOTSTRAP and facts.exit_code == 0:
        return _without_bootstrap(facts, end)
    if facts.waiting:
        return _bootstrapping(facts, end)
    if facts.release and facts.release < WITHOUT_TERRAFORM:
        return _must_restart(f"{end} Terraform was making the bootstrap VM and the control plane: it does not go on.")
    return _must_restart(f"{end} The infrastructure was half made, and the installer does not go on there.")


def _awaited(facts: Facts, end: str) -> Decision:
    if not facts.has_metadata:
        return _lost(end)
    return Decision(RESUME, f"{end} The bootstrap VM had done its part: the rest is waited for.", (WAIT_FOR_INSTALL,))


def _without_bootstrap(facts: Facts, end: str) -> Decision:
    if not facts.has_metadata:
        return _lost(end)
    why = f"{end} The control plane runs by itself: the rest is waited for."
    if not facts.bootstrap_there:
        return Decision(RESUME, why, (WAIT_FOR_INSTALL,))
    why = f"{end} The control plane runs by itself: the bootstrap VM is removed, and the rest waited for."
    if not facts.bootstrap_running:  # the installer fails where it is to switch off what is off
        return Decision(RESUME, why, (WAIT_FOR_INSTALL,), removes_bootstrap=True)
    return Decision(RESUME, why, (DESTROY_BOOTSTRAP, WAIT_FOR_INSTALL))


def _bootstrapping(facts: Facts, end: str) -> Decision:
    if not facts.bootstrap_there:
        return _must_restart(f"{end} The bootstrap VM is gone, and the control plane was not there yet.")
    if not facts.bootstrap_running:
        return _must_restart(f"{end} The bootstrap VM is switched off, and does not go on from where it was.")
    if not facts.has_metadata:
        return _lost(end)
    why = f"{end} The bootstrap VM is at work: it and the rest are waited for."
    return Decision(RESUME, why, (WAIT_FOR_BOOTSTRAP, DESTROY_BOOTSTRAP, WAIT_FOR_INSTALL))


def _lost(end: str) -> Decision:
    return _must_restart(f"{end} The installer's directory has lost its metadata.json, so it cannot go on.")


def _must_restart(why: str) -> Decision:
    return Decision(MUST_RESTART, f"{why} `{RESTART}` removes what is there and starts over.", (CREATE,), clears=True)


def _config_note(decision: Decision) -> str:
    if decision.kind == DONE:
        return (
            "The lab's install-config.yaml is another one than this cluster was installed with. Its workers, spares "
            "and BMCs follow lab_spec; other changes are not done by reinstalling: change the cluster itself."
        )
    return "The lab's install-config.yaml has changed since this installation began, which goes on with the old one."


def _version_note(facts: Facts, decision: Decision) -> str:
    if decision.kind == DONE:
        return (
            f"Version {facts.other_version} is asked for, and {facts.version} was installed: a cluster updates itself."
        )
    return f"Version {facts.other_version} is asked for, but this installation began with {facts.version}."


def _way_out(facts: Facts, decision: Decision) -> str:
    if decision.kind == RESUME and not facts.restart:
        return f"To begin anew instead: `{RESTART}` removes what is there."
    return f"To begin anew instead: `{TEARDOWN}` {'ends and ' if decision.kind == ATTACH else ''}removes it first."
