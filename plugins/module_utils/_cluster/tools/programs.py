# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running oc and the installer: whether they do on this host, and to get the one with the other."""

from __future__ import annotations

import base64
import binascii
import errno
import json
import os
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import UMASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.release import Report

START_SECONDS = 120.0  # a host may be busy
EXTRACT_SECONDS = 3000.0
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "ssl_cert_file", "ssl_cert_dir")
SECRET_KEYS = ("auth", "password", "identitytoken", "registrytoken")
LAST_LINES = 5


def try_oc(oc: Path, home: Path) -> None:
    _start(home, oc, "version", "--client")


def ask_installer(installer: Path, home: Path) -> Report:
    said = _start(home, installer, "version")
    report = tools_release.report(said)
    if report is None:
        raise OperatorError(f"{installer.name} does not say its version, but: {_ending(said)}")
    return report


def extract(oc: Path, program: str, image: str, to: Path, pull_secret: str) -> None:
    """The pull secret is in memory only: in no file that a killed run could leave, and in no argument."""
    command = [oc, "adm", "release", "extract", f"--command={program}", "--to", to, image]
    with _in_memory(pull_secret) as secret:
        options = ["--registry-config", f"/proc/self/fd/{secret}"] if pull_secret else []
        try:
            done = _run([*command, *options], to, EXTRACT_SECONDS, pass_fds=(secret,))
        except subprocess.TimeoutExpired as error:
            raise OperatorError(
                f"{image}: oc has not got {program} out of it in {EXTRACT_SECONDS:.0f} seconds."
            ) from error
    if done.returncode or not (to / program).is_file():
        hint = "" if pull_secret else " There was no pull_secret."
        said = _ending(_without_secrets(done.stderr + done.stdout, pull_secret))
        raise OperatorError(f"{program} cannot be taken out of the release image {image}: {said}{hint}")
    (to / program).chmod(0o755)


def refuse_bad_pull_secret(pull_secret: str) -> None:
    with suppress(ValueError, AttributeError):
        if not pull_secret or isinstance(json.loads(pull_secret).get("auths"), dict):
            return
    raise OperatorError("pull_secret must be JSON with `auths` in it: download it again, and use it unchanged.")


def _start(home: Path, program: Path, *arguments: str) -> str:
    try:
        done = _run([program, *arguments], home, START_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise _does_not_run(program, f"it gives no answer in {START_SECONDS:.0f} seconds") from error
    except OSError as error:
        raise _does_not_run(program, _reason(error)) from error
    if done.returncode:
        raise _does_not_run(program, _ending(done.stderr or done.stdout) or f"it ended with {done.returncode}")
    return done.stdout


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOEXEC:
        return "it is for another architecture, or no program at all"
    if error.errno == errno.EACCES:
        return "it may not; is the file system mounted with noexec?"
    return str(error.strerror)


def _does_not_run(program: Path, why: str) -> OperatorError:
    return OperatorError(f"{program.name} does not run on this host ({os.uname().machine}): {why}.")


def _run(
    command: Sequence[Any], home: Path, seconds: float, pass_fds: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    # Nothing else of the environment: it may name another release image, other registries, another cluster.
    environment = {name: value for name, value in os.environ.items() if name.lower() in PASSED_ON}
    environment.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME=str(home))
    return subprocess.run(
        [str(part) for part in command],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=home,
        env=environment,
        timeout=seconds,
        pass_fds=pass_fds,
        umask=UMASK,
    )


@contextmanager
def _in_memory(text: str) -> Iterator[int]:
    descriptor = os.memfd_create("pull-secret")
    try:
        os.write(descriptor, text.encode())
        yield descriptor
    finally:
        os.close(descriptor)


def _without_secrets(text: str, pull_secret: str) -> str:
    for secret in sorted(_secrets(pull_secret), key=len, reverse=True):
        text = text.replace(secret, "...")
    return text


def _secrets(pull_secret: str) -> Iterator[str]:
    logins = json.loads(pull_secret)["auths"].values() if pull_secret else []
    for login in (login for login in logins if isinstance(login, dict)):
        for value in (str(login[key]) for key in SECRET_KEYS if login.get(key)):
            yield value
            with suppress(binascii.Error, UnicodeDecodeError, ValueError):
                yield base64.b64decode(value, validate=True).decode().partition(":")[2] or value


def _ending(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-LAST_LINES:]).rstrip(".")
