"""ssh into a lab host without any network: sshd answers on the pipes of nsenter, with keys that only the bench uses."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from support.cache import cache_dir, locked
from support.waiting import PATIENCE

_SSHD = """\
HostKey /run/lab-ssh/host_key
AuthorizedKeysFile /run/lab-ssh/user_key.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
Subsystem sftp internal-sftp
AcceptEnv LANG LC_*
PidFile none
"""
# Without this, two runs that share a connection would also share its fate when one of them is killed.
_CLIENT = """\
Host {name}
  User root
  IdentityFile {identity}/user_key
  IdentitiesOnly yes
  HostKeyAlias lab-host
  UserKnownHostsFile {identity}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  LogLevel ERROR
  ProxyCommand {connect}
"""


def identity() -> Path:
    """A directory with the keys of both sides; the same for all lab hosts of this user."""
    path = cache_dir() / "identity"
    with locked("identity"):
        if not path.exists():
            _make(path)
    return path


def _make(path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        made = Path(directory) / "made"
        made.mkdir(mode=0o755)
        for name in ("host_key", "user_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(made / name)], check=True
            )
        (made / "known_hosts").write_text(f"lab-host {(made / 'host_key.pub').read_text()}")
        (made / "sshd_config").write_text(_SSHD)
        shutil.copytree(made, path)


def client_config(name: str, connect: str) -> str:
    return _CLIENT.format(name=name, identity=identity(), connect=connect)


SSHD_COMMAND = ["sh", "-c", "mkdir -p /run/sshd; exec /usr/sbin/sshd -i -f /run/lab-ssh/sshd_config"]


def inventory_variables(config: Path, name: str) -> dict[str, object]:
    """What Ansible has to know of a lab host."""
    return {
        "ansible_connection": "ssh",
        "ansible_host": name,
        "ansible_user": "root",
        "ansible_ssh_common_args": f"-F {config}",
        "ansible_ssh_timeout": PATIENCE,  # ten seconds are not enough where much else runs
        "ansible_pipelining": True,
        "ansible_python_interpreter": "/usr/bin/python3",
    }
