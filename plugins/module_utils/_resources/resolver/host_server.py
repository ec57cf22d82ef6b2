# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Made by nometal.ipi and removed with the last lab.
#
# glibc knows no split by domain. So a small dnsmasq on a loopback address of its own sends the labs' domains to the
# labs' name servers and all else to the name servers that stand in resolv.conf, where it comes first.
# settle() makes this so while the network of a lab is up, and undoes it otherwise. It needs nothing but Python's own
# library, for this file is also the hook that libvirt runs when a network has started or stopped.
import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

ENTRY = "all_labs.resolver"  # which is no lab's name
HOOK = Path("/etc/libvirt/hooks/nometal.d") / ENTRY
LABS = Path("/var/lib/nometal/resolver")
RESOLV_CONF = Path("/etc/resolv.conf")
RESOLVED = "/run/systemd/resolve/"
RESOLVED_STUBS = ("127.0.0.53", "127.0.0.54")
STATE = Path("/run/nometal-resolver")
SERVERS = STATE / "servers"
APPLIED = STATE / "applied"  # what of it the running dnsmasq has read
PID = STATE / "pid"
KNOWN = ("lock", "servers", "applied", "pid")
"""All that is in there."""
ADDRESS = "127.78.77.53"
LINE = f"nameserver {ADDRESS} # nometal.ipi: asks the labs for their names, and the servers below for all others\n"
DNSMASQ = (
    "/usr/sbin/dnsmasq",
    "--conf-file=/dev/null",
    f"--listen-address={ADDRESS}",
    "--bind-interfaces",
    f"--resolv-file={RESOLV_CONF}",
    f"--servers-file={SERVERS}",
    f"--pid-file={PID}",
    "--dns-loop-detect",  # so that it leaves itself out of the servers in resolv.conf
    "--strict-order",  # which is glibc's
    "--cache-size=0",
    "--no-hosts",
    "--proxy-dnssec",
)
FILE_MODE, DIRECTORY_MODE = 0o644, 0o755
WATCH = "nometal-resolver"
SERVER_UNIT = "nometal-dnsmasq"


class HostServerError(Exception):
    """The text says what is wrong."""


def settle(*, anew: bool = False) -> None:
    """Bring the host's server and resolv.conf to where the labs' networks are. Safe to run at any time, and twice.

    Anew: with a fresh dnsmasq, for the one that runs does not answer as it should.
    """
    if is_settled() and not anew:
        return
    STATE.mkdir(exist_ok=True)
    STATE.chmod(DIRECTORY_MODE)  # whatever the umask, and libvirt's when it calls the hook
    with _opened(STATE / "lock", 0o600) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if is_needed():
                _serve(anew=anew)
            else:
                _withdraw()
        except FileNotFoundError as error:
            raise HostServerError(f"{error.filename} is missing: role nometal.ipi.host_prep installs it.") from error
        except OSError as error:
            raise HostServerError(f"{error.filename or STATE}: {error.strerror}.") from error


def is_settled() -> bool:
    text = read_resolv_conf()
    if is_needed():
        watched = _is_watched() or not _has_systemd()
        served = bool(pid()) and _applied() == servers_text() and _is_readable()
        return served and with_line(text) == text and watched
    return not pid() and without_line(text) == text and not _is_watched()


def is_needed() -> bool:
    """Some lab's network is up, and resolv.conf is not systemd-resolved's, in which case this is no longer the way."""
    ours = RESOLV_CONF.exists() and not os.path.realpath(RESOLV_CONF).startswith(RESOLVED)
    return ours and any(_is_up(link) for link, _servers in labs())


def labs() -> list[tuple[str, list[str]]]:
    """Of each lab the link of its network, and its lines for dnsmasq."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(LABS.glob("*.lab"))]
    lines = [[line for line in text.splitlines() if not line.startswith("#")] for text in texts]
    return [(link.replace("link ", "", 1), servers) for link, *servers in lines]


def servers_text() -> str:
    """While a lab's network is down, its names do not exist, rather than to be asked for elsewhere."""
    lines = [line if _is_up(link) else f"{line.rpartition('/')[0]}/" for link, servers in labs() for line in servers]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def with_line(text: str) -> str:
    text = without_line(text)
    first = re.search(r"^nameserver\s", text, re.MULTILINE)
    start = first.start() if first else 0
    return text[:start] + LINE + text[start:]


def without_line(text: str) -> str:
    return re.sub(rf"^nameserver[ \t]+{re.escape(ADDRESS)}([ \t].*)?(\n|\Z)", "", text, flags=re.MULTILINE)


def read_resolv_conf() -> str:
    with suppress(FileNotFoundError):
        return RESOLV_CONF.read_bytes().decode("latin-1")  # which gives every byte back as it was
    return ""


def pid() -> int | None:
    with suppress(OSError, ValueError):
        number = int(PID.read_text(encoding="ascii"))
        command = Path(f"/proc/{number}/cmdline").read_text(encoding="utf-8").split("\0")
        return number if f"--pid-file={PID}" in command else None
    return None


def _is_up(link: str) -> bool:
    with suppress(OSError):
        return bool(socket.if_nametoindex(link))
    return False


def _serve(*, anew: bool) -> None:
    servers = servers_text()
    was_readable = _is_readable()
    _write(SERVERS, servers)
    number = pid()
    if anew or not number:
        _start()
    elif _applied() != servers or not was_readable:
        os.kill(number, signal.SIGHUP)
    _write(APPLIED, servers)
    _watch()
    _write_resolv_conf(with_line(read_resolv_conf()))


def _withdraw() -> None:
    _systemctl("stop", f"{WATCH}.path")
    _write_resolv_conf(without_line(read_resolv_conf()))
    _stop()


def _is_readable() -> bool:
    """For dnsmasq, which reads it as a user of its own."""
    with suppress(FileNotFoundError):
        modes = (SERVERS.stat().st_mode, STATE.stat().st_mode)
        return tuple(map(stat.S_IMODE, modes)) == (FILE_MODE, DIRECTORY_MODE)
    return False


def _write(file: Path, text: str) -> None:
    with _opened(file, FILE_MODE) as opened:
        opened.write(text)


def _opened(file: Path, mode: int) -> TextIO:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "w", encoding="utf-8")


def _applied() -> str:
    with suppress(FileNotFoundError):
        return APPLIED.read_text(encoding="utf-8")
    return ""


def _start() -> None:
    _stop()  # a remainder that has lost its pid file
    unit = ["systemd-run", "--quiet", "--collect", f"--unit={SERVER_UNIT}"]
    service = [*unit, "--property=Type=forking", "--property=Restart=on-failure"] if _has_systemd() else []
    _run(SERVER_UNIT, [*service, *DNSMASQ])


def _stop() -> None:
    _systemctl("stop", f"{SERVER_UNIT}.service")
    number = pid()
    if number:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGTERM)
            os.kill(number, signal.SIGCONT)  # one that is held would not end
    for _attempt in range(100):
        if not pid():
            return
        time.sleep(0.02)
    raise HostServerError(f"dnsmasq (process {number}) does not stop.")


def _watch() -> None:
    """Have the line put back when DHCP, NetworkManager or anyone else writes resolv.conf anew."""
    if _is_watched() or not _has_systemd():
        return
    files = sorted({str(RESOLV_CONF), os.path.realpath(RESOLV_CONF)})
    triggers = [f"--path-property=PathChanged={file}" for file in files]
    unit = ["systemd-run", "--quiet", "--collect", f"--unit={WATCH}", *triggers]
    # However often others write it: the watch is never given up.
    service = [*unit, "--property=Type=oneshot", "--property=StartLimitIntervalSec=0", str(HOOK)]
    _run(WATCH, service)


def _run(unit: str, command: list[str]) -> None:
    began = int(time.time())
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, umask=0o022)
    except subprocess.CalledProcessError as error:
        said = f"{error.stderr.strip()}\n{_journal(unit, began)}".strip()
        raise HostServerError(f"`{' '.join(command)}` failed: {said}") from error


def _journal(unit: str, since: int) -> str:
    """Why a service did not start, which systemd-run does not say."""
    sync = ["journalctl", "--sync"]
    ask = ["journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=5", f"--since=@{since}", f"--unit={unit}"]
    if not _has_systemd():
        return ""
    subprocess.run(sync, check=False, capture_output=True)
    return subprocess.run(ask, check=False, capture_output=True, text=True).stdout


def _is_watched() -> bool:
    return _systemctl("is-active", f"{WATCH}.path")


def _systemctl(*words: str) -> bool:
    command = ["systemctl", *words]
    return _has_systemd() and subprocess.run(command, check=False, capture_output=True).returncode == 0


def _has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


def _write_resolv_conf(text: str) -> None:
    if text == read_resolv_conf():
        return
    target = Path(os.path.realpath(RESOLV_CONF))
    draft = target.with_name(".resolv.conf.nometal")
    try:
        with suppress(FileNotFoundError):
            draft.unlink()
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("latin-1"))
        shutil.copystat(target, draft)  # with its SELinux label
        os.utime(draft)
        os.chown(draft, target.stat().st_uid, target.stat().st_gid)
        draft.replace(target)
    except OSError:  # it is mounted there, as in containers
        target.write_bytes(text.encode("latin-1"))
        with suppress(FileNotFoundError):
            draft.unlink()


if __name__ == "__main__":
    try:
        settle()
    except HostServerError as failure:
        raise SystemExit(str(failure)) from failure
