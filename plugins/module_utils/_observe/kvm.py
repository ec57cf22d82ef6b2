# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether KVM runs a guest here, and who may use it."""

from __future__ import annotations

import os
import pwd
import re
import signal
import stat
import subprocess
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.files import group_name, user_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import program, text_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm_device import DEVICE

SIGN_OF_LIFE = b"KVM runs"

SIZE = 0x10000
RESET_VECTOR = 0xFFF0  # where the CPU begins, 16 bytes below the end of the firmware
SERIAL_PORT = 0x3F8
RESET_PORT = 0xCF9


def firmware() -> bytes:
    """A firmware image in place of SeaBIOS, in 16-bit code: it writes to the serial port and resets the machine."""
    code = _cli() + b"".join(_out(SERIAL_PORT, letter) for letter in SIGN_OF_LIFE) + _out(RESET_PORT, 6) + _halt()
    return code.ljust(RESET_VECTOR, b"\xf4") + _jump_far(segment=0xF000, offset=0).ljust(SIZE - RESET_VECTOR, b"\0")


def _cli() -> bytes:
    return b"\xfa"


def _out(port: int, value: int) -> bytes:
    return b"\xba" + port.to_bytes(2, "little") + b"\xb0" + bytes([value]) + b"\xee"  # mov dx; mov al; out dx, al


def _halt() -> bytes:
    return b"\xf4\xeb\xfd"  # hlt; jmp to it


def _jump_far(segment: int, offset: int) -> bytes:
    return b"\xea" + offset.to_bytes(2, "little") + segment.to_bytes(2, "little")


GUEST_SECONDS = 3
NOT_MEASURED = "not measured yet: qemu is not installed"
GROUP_MAY = stat.S_IRGRP | stat.S_IWGRP
QEMU_USERS = ("libvirt-qemu", "qemu")  # Debian family, Red Hat family


@dataclass(frozen=True)
class Trial:
    """A guest of a few instructions, run for a moment; `failure` is why it did not run to its end."""

    device: bool
    cpu_flag: str
    qemu: str = ""
    ran: bool = False
    failure: str = ""

    @property
    def obstacle(self) -> str:
        """Why no guest runs under KVM; empty when one has run."""
        if self.ran:
            return ""
        if not self.device:
            return "there is no /dev/kvm"
        return f"/dev/kvm is there but runs no guest; {self.failure}" if self.qemu else NOT_MEASURED


def measure_kvm(needs: Needs) -> Trial:
    device, cpu_flag = DEVICE.exists(), _virtualisation_flag()
    qemu = needs.qemu or program("qemu-system-x86_64", "qemu-kvm")
    if not device or not qemu:
        return Trial(device, cpu_flag, qemu)
    failure = _failure_of_guest(qemu)
    return Trial(device, cpu_flag, qemu, ran=not failure, failure=failure)


def _virtualisation_flag() -> str:
    found = re.search(r"^flags\s*:.*\b(vmx|svm)\b", text_of("/proc/cpuinfo"), re.MULTILINE)
    return found.group(1) if found else ""


def _failure_of_guest(qemu: str) -> str:
    image = os.memfd_create("nometal-doctor")
    try:
        os.write(image, firmware())
        return _failure_of(_guest_command(qemu, f"/proc/self/fd/{image}"), image)
    finally:
        os.close(image)


def _guest_command(qemu: str, image: str) -> list[str]:
    # The CPU model is the bootstrap VM's: the installer makes it with host-passthrough.
    machine = ["-machine", "q35", "-accel", "kvm", "-cpu", "host", "-smp", "1", "-m", "16", "-bios", image]
    return [qemu, *machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"]


def _failure_of(command: list[str], image: int) -> str:
    try:
        # The words are ours, and no shell is in between.
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GUEST_SECONDS,
            check=False,
            pass_fds=(image,),
        )
    except subprocess.TimeoutExpired:
        return f"the guest hung for {GUEST_SECONDS} s"
    if done.returncode == 0 and SIGN_OF_LIFE in done.stdout:
        return ""
    return f"{_ending(done.returncode)}: {_main_line(done.stderr)}"


def _ending(returncode: int) -> str:
    if returncode < 0:
        return f"qemu was ended by {signal.Signals(-returncode).name}"
    return f"qemu ended with {returncode}" if returncode else "the guest gave no sign of life"


def _main_line(stderr: bytes) -> str:
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "warning:" not in line]
    return (errors or lines or ["no message"])[0][:160]


@dataclass(frozen=True)
class DeviceAccess:
    """Who may open /dev/kvm; `user` is the one qemu runs as, empty before libvirt is installed."""

    there: bool
    mode: int = 0
    owner: str = ""
    group: str = ""
    user: str = ""
    user_may: bool = False


def measure_kvm_access(_needs: Needs) -> DeviceAccess:
    try:
        state = DEVICE.stat()
    except FileNotFoundError:
        return DeviceAccess(there=False)
    user = next(filter(None, map(_user, QEMU_USERS)), None)
    return DeviceAccess(
        there=True,
        mode=stat.S_IMODE(state.st_mode),
        owner=user_name(state.st_uid),
        group=group_name(state.st_gid),
        user=user.pw_name if user else "",
        user_may=user is not None and _may_open(user, state),
    )


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _may_open(user: pwd.struct_passwd, state: os.stat_result) -> bool:
    if user.pw_uid == state.st_uid:
        wanted = stat.S_IRUSR | stat.S_IWUSR
    elif state.st_gid in os.getgrouplist(user.pw_name, user.pw_gid):
        wanted = GROUP_MAY
    else:
        wanted = stat.S_IROTH | stat.S_IWOTH
    return state.st_mode & wanted == wanted


def kvm_failure() -> str:
    """Empty when a guest runs under KVM, also as qemu's user. A device that is there may run none all the same."""
    trial, access = measure_kvm(Needs()), measure_kvm_access(Needs())
    if not trial.ran:
        return trial.obstacle
    return "" if access.user_may or not access.user else f"/dev/kvm is closed to {access.user}"
