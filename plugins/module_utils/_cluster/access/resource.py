# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for those who reach a cluster from elsewhere, by a SOCKS proxy on its host: a kubeconfig and a PAC file."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import domain_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

ROOT_ALONE = files.Access("root", "root", 0o600)
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


@dataclass(frozen=True)
class AccessFiles:
    """By path: what is in it, and who may read it. A kubeconfig is secret, so it is compared and never shown."""

    contents: Mapping[str, str]


@dataclass(frozen=True)
class Wanted:
    path: Path
    text: str

    @property
    def is_there(self) -> bool:
        return files.text_of(self.path) == self.text and files.has_access(self.path, ROOT_ALONE)


def by_proxy(kubeconfig: str, port: int) -> str:
    """The same clusters and users, by the proxy. The name of the API is resolved at its other end."""
    if not SERVER.search(kubeconfig):
        raise OperatorError("The kubeconfig names no server: it is damaged. The installer writes it.")
    return SERVER.sub(rf"\g<0>\n\g<indent>proxy-url: socks5://127.0.0.1:{port}", kubeconfig)


class Port:
    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted

    def read(self) -> AccessFiles:
        return AccessFiles({str(each.path): "as wanted" if each.is_there else "" for each in self._wanted})

    def apply(self, step: Step) -> None:
        [wanted] = [each for each in self._wanted if str(each.path) == step.target]
        files.write_whole(wanted.path, wanted.text, ROOT_ALONE)


class ClusterAccess(Resource[AccessFiles, Port]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._paths: Paths = paths_of(params["lab"])
        try:
            self._domain = domain_name(params["domain"])
        except ValueError as error:
            raise OperatorError(f"domain: {error}.") from error

    def desired(self) -> AccessFiles:
        return AccessFiles({str(path): "as wanted" for path in (self._paths.proxy_kubeconfig, self._paths.pac)})

    @contextmanager
    def open(self) -> Iterator[Port]:
        text = files.text_of(self._paths.kubeconfig)
        if text is None:
            raise NotThereYetError(
                f"Lab {self._paths.lab} has no kubeconfig on this host: playbooks/install.yml installs its cluster."
            )
        port = self.params["port"]
        pac = PAC.format(domain=self._domain, port=port)
        yield Port([Wanted(self._paths.proxy_kubeconfig, by_proxy(text, port)), Wanted(self._paths.pac, pac)])

    def plan(self, current: AccessFiles | None, desired: AccessFiles) -> Sequence[Step]:
        there = current.contents if current else {}
        return [Step("write", path) for path, content in desired.contents.items() if there.get(path) != content]

    def result(self) -> dict[str, Any]:
        return {"kubeconfig": str(self._paths.proxy_kubeconfig), "pac": str(self._paths.pac)}
