# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages of an installation, and the lines of the log that begin them, from 4.9 on."""

from __future__ import annotations

import re
from enum import Enum


class Stage(Enum):
    PREPARE = "prepare"
    INFRASTRUCTURE = "infrastructure"
    API = "api"
    BOOTSTRAP = "bootstrap"
    CONTROL_PLANE = "control plane"
    ETCD = "etcd"
    DESTROY_BOOTSTRAP = "destroy bootstrap"
    INITIALIZE = "initialize"
    OPERATORS = "operators"
    CONSOLE = "console"
    COMPLETE = "complete"


DOING = {
    Stage.PREPARE: "prepares the installation",
    Stage.INFRASTRUCTURE: "makes the bootstrap VM",
    Stage.API: "waits for the API",
    Stage.BOOTSTRAP: "waits for bootstrapping to complete",
    Stage.CONTROL_PLANE: "waits for the control plane to be provisioned",
    Stage.ETCD: "waits for the bootstrap VM to leave etcd",
    Stage.DESTROY_BOOTSTRAP: "removes the bootstrap VM",
    Stage.INITIALIZE: "waits for the cluster to initialize",
    Stage.OPERATORS: "waits for the operators to settle",
    Stage.CONSOLE: "looks for the console",
    Stage.COMPLETE: "has installed the cluster",
}

WAITS = r"Waiting (?:up to \S+ (?:\(until [^)]*\) )?)?"
"""Older releases do not say until when, and some wait without a limit of their own."""
BEGINS = (
    (r"OpenShift Installer ", Stage.PREPARE),
    (r"Creating infrastructure resources", Stage.INFRASTRUCTURE),
    (rf"{WAITS}for the Kubernetes API", Stage.API),
    (rf"{WAITS}for bootstrapping to complete", Stage.BOOTSTRAP),
    (rf"{WAITS}for the bootstrap-complete event", Stage.BOOTSTRAP),
    (rf"{WAITS}for baremetal control plane to provision", Stage.CONTROL_PLANE),
    (r"Baremetal control plane finished provisioning", Stage.BOOTSTRAP),
    (rf"{WAITS}for the bootstrap etcd member to be removed", Stage.ETCD),
    (r"Destroying the bootstrap resources", Stage.DESTROY_BOOTSTRAP),
    (r"libvirt: Destroying bootstrap", Stage.DESTROY_BOOTSTRAP),
    (rf"{WAITS}for the cluster at \S+ to initialize", Stage.INITIALIZE),
    (rf"{WAITS}to ensure each cluster operator has finished progressing", Stage.OPERATORS),
    (r"Checking to see if there is a route at openshift-console/console", Stage.CONSOLE),
    (rf"{WAITS}for the openshift-console route to be created", Stage.CONSOLE),
    (r"Install complete!", Stage.COMPLETE),
)
ANY = re.compile("|".join(f"(?P<n{number}>{pattern})" for number, (pattern, _stage) in enumerate(BEGINS)))


def begun_by(msg: str) -> Stage | None:
    """Which stage begins with this message."""
    found = ANY.match(msg.lstrip())
    return BEGINS[int((found.lastgroup or "n0")[1:])][1] if found else None
