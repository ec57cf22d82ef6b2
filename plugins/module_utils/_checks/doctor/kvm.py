# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import Finding, blocker_if, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import GROUP_MAY, DeviceAccess, Trial


def judge_kvm(trial: Trial, needs: Needs) -> Finding:
    if trial.ran:
        return ok(f"a guest ran under KVM ({trial.cpu_flag or 'no CPU flag seen'})")
    slow = "" if needs.install else " The rehearsal runs without KVM, more slowly (TCG)."
    if not trial.device:
        return blocker_if(needs.install, trial.obstacle, _how_to_get_kvm(trial.cpu_flag) + slow)
    if not trial.qemu:
        return blocker_if(
            needs.prepared,
            trial.obstacle,
            "host_prep installs it (qemu-system-x86, qemu-kvm), and the doctor checks again.",
        )
    return blocker_if(
        needs.install,
        trial.obstacle,
        f"Use another host, or have the cloud provider enable nested virtualisation.{slow}",
    )


def _how_to_get_kvm(cpu_flag: str) -> str:
    if cpu_flag:
        module = "kvm_intel" if cpu_flag == "vmx" else "kvm_amd"
        return f"The CPU supports virtualisation ({cpu_flag}): load the module {module}."
    return "The CPU has neither vmx nor svm: enable virtualisation in the firmware, or nested on the host of this VM."


def judge_kvm_access(access: DeviceAccess, needs: Needs) -> Finding:
    if not access.there:
        return ok("there is no /dev/kvm")
    measured = f"/dev/kvm is {access.owner}:{access.group} {access.mode:04o}"
    if access.user_may:
        return ok(f"{measured}, accessible to {access.user}")
    if not access.user and access.mode & GROUP_MAY == GROUP_MAY:
        return ok(measured)
    advice = "Calls to libvirt may take minutes, since it queries qemu each time: use group kvm and mode 0660. "
    if not needs.prepared:
        return warning(f"{measured}, not accessible to qemu's user", f"{advice}host_prep sets them.")
    return blocker_if(
        needs.install, f"{measured}, not accessible to {access.user or 'users other than root'}", advice.rstrip()
    )
