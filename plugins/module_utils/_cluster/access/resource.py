# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for those who reach a cluster from elsewhere, by a SOCKS proxy on its host: a kubeconfig and a PAC file."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, private_files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.private_files import (
    PrivateFile,
    PrivateFiles,
    PrivateFilesPort,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import domain_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SERVER = re.compile(r"^(?P<indent>\s+)server:.*$", re.MULTILINE)
PAC = """\
// Names of the cluster {domain} through the SOCKS proxy; all others as without this file.
function FindProxyForURL(url, host) {{
  if (host == "{domain}" || dnsDomainIs(host, ".{domain}")) {{
    return "SOCKS5 127.0.0.1:{port}; SOCKS 127.0.0.1:{port}";
  }}
  return "DIRECT";
}}
"""


def by_proxy(kubeconfig: str, port: int) -> str:
    """The same clusters and users, by the proxy. The name of the API is resolved at its other end."""
    if not SERVER.search(kubeconfig):
        raise OperatorError("The kubeconfig names no server: it is damaged. The installer writes it.")
    return SERVER.sub(rf"\g<0>\n\g<indent>proxy-url: socks5://127.0.0.1:{port}", kubeconfig)


class ClusterAccess(Resource[PrivateFiles, PrivateFilesPort]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._paths: Paths = paths_of(params["lab"])
        try:
            self._domain = domain_name(params["domain"])
        except ValueError as error:
            raise OperatorError(f"domain: {error}.") from error

    def desired(self) -> PrivateFiles:
        return private_files.desired([self._paths.proxy_kubeconfig, self._paths.pac])

    @contextmanager
    def open(self) -> Iterator[PrivateFilesPort]:
        text = files.text_of(self._paths.kubeconfig)
        if text is None:
            raise NotThereYetError(
                f"Lab {self._paths.lab} has no kubeconfig on this host: playbooks/install.yml installs its cluster."
            )
        port = self.params["port"]
        pac = PAC.format(domain=self._domain, port=port)
        yield PrivateFilesPort(
            [PrivateFile(self._paths.proxy_kubeconfig, by_proxy(text, port)), PrivateFile(self._paths.pac, pac)]
        )

    def plan(self, current: PrivateFiles | None, desired: PrivateFiles) -> Sequence[Step]:
        return private_files.plan(current, desired)

    def result(self) -> dict[str, Any]:
        return {"kubeconfig": str(self._paths.proxy_kubeconfig), "pac": str(self._paths.pac)}
