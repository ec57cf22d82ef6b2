# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

PATIENCE = 5.0


@dataclass(frozen=True)
class LinkManager(ABC):
    """A service that takes care of the host's links, and has to be told to leave ours alone."""

    unit: str
    home: Path
    file: str
    between_names: str
    text: str
    reload: tuple[str, ...]

    @abstractmethod
    def is_in_use(self) -> bool:
        """Whether a file for it serves any purpose here."""

    @abstractmethod
    def held(self) -> set[str]:
        """The links that it has not let go of."""

    @abstractmethod
    def let_go(self, link: str) -> None:
        """More than to reload, if it takes more."""

    def is_running(self) -> bool:
        if not Path("/run/systemd/system").is_dir():
            return False
        state = run("systemctl", "show", "--property=ActiveState", "--value", self.unit)
        return state.strip() not in ("inactive", "failed")


class NetworkManager(LinkManager):
    def is_in_use(self) -> bool:
        return self.home.is_dir()

    def held(self) -> set[str]:
        states = [
            line.split(":") for line in run("nmcli", "--terse", "--fields", "DEVICE,STATE", "device").splitlines()
        ]
        # A bridge that it has disconnected stays so until it is restarted, but it does nothing to it.
        return {name for name, state, *_more in states if state not in ("unmanaged", "disconnected")}

    def let_go(self, link: str) -> None:
        run("nmcli", "device", "set", link, "managed", "no")


class Networkd(LinkManager):
    def is_in_use(self) -> bool:
        return self.is_running()  # its directory is there on every host with systemd

    def held(self) -> set[str]:
        # index, link, type, operational state, setup state; at times with a dot in front
        rows = [line.split() for line in run("networkctl", "--no-legend", "--no-pager", "list").splitlines()]
        return {row[-4] for row in rows if row[-1] != "unmanaged"}

    def let_go(self, link: str) -> None:
        """To reload is enough."""


@dataclass(frozen=True)
class UnmanagedFile:
    """The file that tells one link manager to leave the links of one pair alone."""

    manager: LinkManager
    pair: str
    links: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.manager.home / self.manager.file.format(self.pair)

    def text(self) -> str:
        return self.manager.text.format(self.manager.between_names.join(self.links))

    def read(self) -> str | None:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else None

    def write(self) -> None:
        directories.make(self.path.parent)
        files.write_whole(self.path, self.text(), 0o644)
        if self.manager.is_running():
            run(*self.manager.reload)
            self._take_links_out_of_its_hands()

    def remove(self) -> None:
        files.remove(self.path)
        if self.manager.is_running():
            run(*self.manager.reload)

    def _take_links_out_of_its_hands(self) -> None:
        """It lets go of links in its own time, and puts some down then."""
        for _look in wait.looks(PATIENCE, 0.1):
            held = self.manager.held() & set(self.links)
            if not held:
                return
            for link in held:
                self.manager.let_go(link)


HEAD = "# Made by nometal.ipi and removed with its veth pair.\n"
LINK_MANAGERS = (
    NetworkManager(
        unit="NetworkManager.service",
        home=Path("/etc/NetworkManager"),
        file="conf.d/nometal-{}.conf",
        between_names=",interface-name:",
        text=HEAD + "[keyfile]\nunmanaged-devices+=interface-name:{}\n",
        reload=("nmcli", "general", "reload", "conf"),
    ),
    Networkd(
        unit="systemd-networkd.service",
        home=Path("/etc/systemd/network"),
        # The first file that matches a link is the one for it, and people have some that match all.
        file="0-0-nometal-{}.network",
        between_names=" ",
        text=HEAD + "[Match]\nName={}\n\n[Link]\nUnmanaged=yes\n",
        reload=("networkctl", "reload"),
    ),
)
