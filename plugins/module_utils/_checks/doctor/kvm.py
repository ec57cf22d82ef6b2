# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker_if, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import GROUP_MAY, DeviceAccess, Trial


def judge_kvm(trial: Trial, needs: Needs) -> Finding:
    if trial.ran:
        return ok(
            "kvm.works", f"a guest ran under KVM ({trial.cpu_flag or 'no CPU flag seen'})", cpu_flag=trial.cpu_flag
        )
    slow = "" if needs.install else " The rehearsal runs without KVM, more slowly (TCG)."
    if not trial.device:
        advice = _how_to_get_kvm(trial.cpu_flag) + slow
        return blocker_if(needs.install, "kvm.no-device", trial.obstacle, advice, cpu_flag=trial.cpu_flag)
    if not trial.qemu:
        return blocker_if(
            needs.prepared,
            "kvm.no-qemu",
            trial.obstacle,
            "host_prep installs it (qemu-system-x86, qemu-kvm), and the doctor checks again.",
        )
    return blocker_if(
        needs.install,
        "kvm.guest-does-not-run",
        trial.obstacle,
        f"Use another host, or have the cloud provider enable nested virtualisation.{slow}",
        reason=trial.failure,
    )


def _how_to_get_kvm(cpu_flag: str) -> str:
    if cpu_flag:
        module = "kvm_intel" if cpu_flag == "vmx" else "kvm_amd"
        return f"The CPU supports virtualisation ({cpu_flag}): load the module {module}."
    return "The CPU has neither vmx nor svm: enable virtualisation in the firmware, or nested on the host of this VM."


def judge_kvm_access(access: DeviceAccess, needs: Needs) -> Finding:
    if not access.there:
        return ok("kvm_access.no-device", "there is no /dev/kvm")
    measured = f"/dev/kvm is {access.owner}:{access.group} {access.mode:04o}"
    facts = {"owner": access.owner, "group": access.group, "mode": f"{access.mode:04o}", "user": access.user}
    if access.user_may:
        return ok("kvm_access.open", f"{measured}, accessible to {access.user}", **facts)
    if not access.user and access.mode & GROUP_MAY == GROUP_MAY:
        return ok("kvm_access.open-to-group", measured, **facts)
    advice = "Calls to libvirt may take minutes, since it queries qemu each time: use group kvm and mode 0660. "
    if not needs.prepared:
        closed = f"{measured}, not accessible to qemu's user"
        return warning("kvm_access.closed", closed, f"{advice}host_prep sets them.", **facts)
    closed = f"{measured}, not accessible to {access.user or 'users other than root'}"
    return blocker_if(needs.install, "kvm_access.closed", closed, advice.rstrip(), **facts)
