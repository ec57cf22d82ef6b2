# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.waiting import PATIENCE

from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import SIGN_OF_LIFE, firmware

from .conftest import Examine

KVM = "cp -a /dev/null /dev/kvm;"  # opens, and can do nothing: it is enough where qemu is a stand-in
MACHINE = "-machine q35 -accel tcg -cpu max -m 16 -nodefaults -display none -no-reboot -serial stdio"
USERS = """as_file /etc/passwd <<'END'
root:x:0:0:root:/root:/bin/sh
libvirt-qemu:x:640:{group}::/:/bin/sh
END
printf 'root:x:0:\\nkvm:x:641:\\nother:x:642:\\n' | as_file /etc/group
"""


def qemu_that(does: str) -> str:
    return f"printf '#!/bin/sh\\n{does}\\n' > /run/qemu; chmod +x /run/qemu;"


@pytest.mark.parametrize(
    ("does", "status", "text"),
    [
        (f"echo {SIGN_OF_LIFE.decode()}", "ok", "a guest ran"),
        ("echo quiet", "blocker", "no sign of life"),
        ("echo error: failed to set MSR >&2; kill -ABRT $$", "blocker", "ended by SIGABRT: error: failed to set MSR"),
        ("echo warning: a; echo error: b >&2; exit 1", "blocker", "qemu ended with 1: error: b"),
        ("exec sleep infinity", "blocker", "the guest hung for 3 s"),
    ],
)
def test_how_a_guest_may_end(examine: Examine, does: str, status: str, text: str) -> None:
    answer = examine(KVM + qemu_that(does), install=True, qemu="/run/qemu")
    assert answer["kvm"][0] == status, answer["kvm"]
    assert text in answer["kvm"][1]
    assert answer.result["kvm_works"] is (status == "ok")


def test_a_kvm_that_lies(examine: Examine) -> None:
    assert examine(KVM, install=True)["kvm"][0] == "blocker"
    answer = examine(KVM)
    assert answer["kvm"][0] == "warning"
    assert "runs no guest" in answer["kvm"][1]
    assert answer.result["domain_type"] == "qemu"


def test_this_machines_kvm_is_judged_by_what_it_does(examine: Examine) -> None:
    device = "mknod -m 0666 /dev/kvm c 10 232 2>/dev/null;"
    command = "qemu-system-x86_64 -accel kvm -cpu host -nodefaults -display none -S -monitor stdio"
    starts = subprocess.run(
        ["unshare", "--mount", "bash", "-c", f"mount -t tmpfs tmpfs /mnt; mknod /mnt/kvm c 10 232; {command}"],
        input="quit\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    works = examine(device).result["kvm_works"]
    assert works is (starts.returncode == 0 and Path("/dev/kvm").exists())


def test_no_kvm(examine: Examine) -> None:
    assert examine(install=True)["kvm"][0] == "blocker"
    assert examine()["kvm"][0] == "warning"
    assert examine()["kvm_access"] == ("ok", "there is no /dev/kvm ")


def test_the_guest_runs(tmp_path: Path) -> None:
    """Where KVM does not work, qemu's own interpreter still shows that the guest is sound."""
    qemu = shutil.which("qemu-system-x86_64")
    assert qemu
    (tmp_path / "firmware").write_bytes(firmware())
    done = subprocess.run(
        [qemu, *MACHINE.split(), "-bios", tmp_path / "firmware"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == SIGN_OF_LIFE


@pytest.mark.parametrize(
    ("device", "group", "status", "text"),
    [
        ("chmod 660 /dev/kvm; chgrp 641 /dev/kvm", 641, "ok", "root:kvm 0660, accessible to libvirt-qemu"),
        ("chmod 666 /dev/kvm", 642, "ok", "accessible to libvirt-qemu"),
        ("chmod 660 /dev/kvm; chgrp 641 /dev/kvm", 642, "warning", "not accessible to qemu's user"),
        ("chmod 600 /dev/kvm", 641, "warning", "root:root 0600"),
    ],
)
def test_access_to_the_device(examine: Examine, device: str, group: int, status: str, text: str) -> None:
    found = examine(KVM + USERS.format(group=group) + device)["kvm_access"]
    assert found[0] == status, found
    assert text in found[1]


def test_the_domain_type_is_kvm_only_when_qemus_user_may_use_it(examine: Examine) -> None:
    good = KVM + qemu_that(f"echo {SIGN_OF_LIFE.decode()}")
    opened = USERS.format(group=641) + "chmod 666 /dev/kvm"
    closed = USERS.format(group=641) + "chmod 600 /dev/kvm"
    assert examine(good + opened, qemu="/run/qemu").result["domain_type"] == "kvm"
    assert examine(good + closed, qemu="/run/qemu").result["domain_type"] == "qemu"
