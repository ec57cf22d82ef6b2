# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.verdict import Verdict, blocker_if, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import GROUP_MAY, DeviceAccess, Trial


def judge_kvm(trial: Trial, needs: Needs) -> Verdict:
    if trial.ran:
        return ok(f"a guest ran under KVM ({trial.cpu_flag or 'no CPU flag seen'})")
    slow = "" if needs.install else " The rehearsal runs without KVM, more slowly (TCG)."
    if not trial.device:
        return blocker_if(needs.install, trial.obstacle, _how_to_get_kvm(trial.cpu_flag) + slow)
    if not trial.qemu:
        return blocker_if(
            needs.prepared,
            trial.obstacle,
            "host_prep installs it (qemu-system-x86, qemu-kvm), and the doctor looks again.",
        )
    return blocker_if(
        needs.install,
        trial.obstacle,
        f"Another host, or nested virtualisation that works: ask whoever runs the cloud.{slow}",
    )


def _how_to_get_kvm(cpu_flag: str) -> str:
    if cpu_flag:
        return f"The CPU can virtualise ({cpu_flag}): load the module kvm_{'intel' if cpu_flag == 'vmx' else 'amd'}."
    return (
        "The CPU shows neither vmx nor svm: enable virtualisation in the firmware, or nested in what this VM runs on."
    )


def judge_kvm_access(access: DeviceAccess, needs: Needs) -> Verdict:
    if not access.there:
        return ok("there is no /dev/kvm")
    measured = f"/dev/kvm is {access.owner}:{access.group} {access.mode:04o}"
    if access.user_may:
        return ok(f"{measured}, open to {access.user}")
    if not access.user and access.mode & GROUP_MAY == GROUP_MAY:
        return ok(measured)
    advice = "libvirt then asks qemu anew on every call, up to minutes each: group kvm and mode 0660 are right. "
    if not needs.prepared:
        return warning(f"{measured}, closed to qemu's user", f"{advice}host_prep sets them.")
    return blocker_if(needs.install, f"{measured}, closed to {access.user or 'all but root'}", f"{advice}Set them.")
