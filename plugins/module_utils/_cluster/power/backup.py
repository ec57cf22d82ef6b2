# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup of etcd, taken on a control plane node as OpenShift documents it, and kept on the host."""

from __future__ import annotations

import tarfile
import time
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client

SECONDS = 900.0
KEPT = 3
NO_BACKUP = "etcd is not backed up, for which `oc` is needed on the host: there is only `kubectl`."
PATTERN, DRAFTS = "etcd-*.tar", ".etcd-*.tar.new"
PARTS = ("*/snapshot_*.db", "*/static_kuberesources_*.tar.gz")
# In a directory of its own on the node, which is gone afterwards: what is on standard output is the archive alone.
SCRIPT = """set -e
umask 077
directory=$(mktemp -d /var/tmp/nometal-etcd.XXXXXX)
trap 'rm -rf "$directory"' EXIT
/usr/local/bin/cluster-backup.sh "$directory" >&2
tar -C "$directory" -cf - .
"""


@dataclass(frozen=True)
class EtcdBackup:
    client: Client
    """`oc`, for kubectl has no command for it."""
    directory: Path

    def take(self, node: str) -> str:
        """The file, which root alone can read: all Secrets of the cluster are in it."""
        files.own_directory(self.directory, 0o700)
        for half in self.directory.glob(DRAFTS):  # of runs that were killed
            files.remove(half)
        path = self.directory / f"etcd-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.tar"
        words = ("debug", "--quiet", "--as-root", f"node/{node}", "--", "chroot", "/host", "sh", "-c", SCRIPT)
        with files.whole(path, files.OWNER_ALONE) as file:
            self.client.copy_output(*words, to=file, seconds=SECONDS)
            file.flush()
            _refuse_incomplete(files.draft_of(path), node)
        for old in sorted(self.directory.glob(PATTERN))[:-KEPT]:
            files.remove(old)
        return str(path)


def _refuse_incomplete(path: Path, node: str) -> None:
    try:
        with tarfile.open(path) as archive:
            names = archive.getnames()
    except (tarfile.TarError, EOFError):
        names = []
    if not all(any(fnmatch(name, part) for name in names) for part in PARTS):
        raise OperatorError(f"The backup of etcd that {node} has sent is not complete.")
