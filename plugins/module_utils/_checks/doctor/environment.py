# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import text_if_there
from ansible_collections.nometal.ipi.plugins.module_utils._observe.system import (
    TESTED,
    Distribution,
    distribution,
    numbers,
    supported,
)

# systemd in a container, nspawn, Docker, Podman
CONTAINER_MARKS = ("/run/systemd/container", "/run/host/container-manager", "/.dockerenv", "/run/.containerenv")
POOLS = "/var/lib/libvirt/images"
PYTHON = (3, 9)
DISTRIBUTION_PREFIXES = ("/usr/bin/", "/usr/libexec/", "/bin/")


def measure_root(_needs: Needs) -> int:
    return os.geteuid()


def judge_root(user: int, _needs: Needs) -> Finding:
    if user:
        return blocker("root.other-user", f"runs as user {user}", "The lab's host needs root: become: true.", user=user)
    return ok("root.is-root", "runs as root")


def measure_architecture(_needs: Needs) -> str:
    return platform.machine()


def judge_architecture(machine: str, _needs: Needs) -> Finding:
    if machine != "x86_64":
        advice = "The lab's nodes are x86_64: use an x86_64 host."
        return blocker("architecture.other", machine, advice, architecture=machine)
    return ok("architecture.supported", machine, architecture=machine)


def measure_distribution(_needs: Needs) -> Distribution:
    return distribution()


def judge_distribution(found: Distribution, _needs: Needs) -> Finding:
    advice, facts = f"Supported: {supported()}.", {"id": found.id, "version": list(found.version)}
    if found.id not in TESTED:
        if set(found.like) & set(TESTED):
            family = f"{found.name}, like {', '.join(found.like)}"
            return warning("distribution.not-tested", family, f"Not tested. {advice}", **facts)
        unknown = f"host_prep does not know its packages. {advice}"
        return blocker("distribution.unknown", found.name, unknown, **facts)
    # Debian testing and unstable carry no number.
    if found.version and found.version < numbers(TESTED[found.id]):
        older = f"{found.name} is older than what is tested"
        return warning("distribution.older", older, advice, **facts)
    return ok("distribution.supported", found.name, **facts)


@dataclass(frozen=True)
class Python:
    version: tuple[int, int]
    executable: str
    has_libvirt: bool


def measure_python(_needs: Needs) -> Python:
    return Python(
        version=(sys.version_info.major, sys.version_info.minor),
        executable=sys.executable,
        has_libvirt=importlib.util.find_spec("libvirt") is not None,
    )


def judge_python(python: Python, needs: Needs) -> Finding:
    measured = f"{python.executable}, {'.'.join(map(str, python.version))}"
    facts = {"executable": python.executable, "version": list(python.version)}
    if python.version < PYTHON:
        needed = "The modules need Python 3.9: set ansible_python_interpreter to a newer one."
        return blocker("python.too-old", measured, needed, **facts)
    if python.has_libvirt:
        return ok("python.with-libvirt", f"{measured}, with libvirt bindings", **facts)
    advice = "Set ansible_python_interpreter: /usr/bin/python3; the distribution's libvirt bindings belong to it."
    if needs.prepared:
        return blocker("python.without-libvirt", f"{measured}, without libvirt bindings", advice, **facts)
    if not python.executable.startswith(DISTRIBUTION_PREFIXES):
        return warning("python.not-the-distributions", f"{measured}, not the distribution's own", advice, **facts)
    return ok("python.without-libvirt-yet", f"{measured}; host_prep installs its libvirt bindings", **facts)


@dataclass(frozen=True)
class Confinement:
    selinux: bool
    apparmor: bool


def measure_confinement(_needs: Needs) -> Confinement:
    return Confinement(
        selinux=text_if_there("/sys/fs/selinux/enforce") == "1",
        apparmor=text_if_there("/sys/module/apparmor/parameters/enabled") == "Y",
    )


def judge_confinement(found: Confinement, needs: Needs) -> Finding:
    on = [name for name, active in (("SELinux", found.selinux), ("AppArmor", found.apparmor)) if active]
    if not on:
        return ok("confinement.off", "neither SELinux nor AppArmor is on")
    measured = f"{' and '.join(on)} on"
    if not Path(needs.pool_path).is_relative_to(POOLS):
        return warning(
            "confinement.pool-elsewhere",
            f"{measured}, and the pool {needs.pool_path} is outside {POOLS}",
            f"qemu may have no access to its disks there: put the pool below {POOLS}, or label the directory.",
            on=on,
            pool_path=needs.pool_path,
        )
    return ok("confinement.supported", f"{measured}, which the lab supports", on=on)


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


UNSYNCHRONISED = 0x40


@dataclass(frozen=True)
class Clock:
    synchronised: bool
    container: bool


def measure_clock(_needs: Needs) -> Clock:
    state = _Timex()  # modes 0: it is only read
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "adjtimex")
    return Clock(not state.status & UNSYNCHRONISED, _in_container())


def _in_container() -> bool:
    return any(Path(mark).exists() for mark in CONTAINER_MARKS)


def judge_clock(clock: Clock, _needs: Needs) -> Finding:
    if clock.synchronised:
        return ok("clock.synchronised", "the clock is synchronised")
    if clock.container:
        return ok("clock.in-container", "not checked in a container, which has the clock of its host")
    return warning(
        "clock.not-synchronised",
        "the clock is not synchronised",
        "Certificates fail on a wrong clock: run chronyd or systemd-timesyncd.",
    )
