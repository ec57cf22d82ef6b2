# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copies that firewalld makes of its shipped zones and policies when their permanent configuration is changed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CONFIGURED, SHIPPED = Path("/etc/firewalld"), Path("/usr/lib/firewalld")
DIRECTORIES = {"zone": "zones", "policy": "policies"}


@dataclass(frozen=True)
class Copy:
    kind: str
    name: str

    @property
    def path(self) -> Path:
        return CONFIGURED / DIRECTORIES[self.kind] / f"{self.name}.xml"

    @property
    def former(self) -> Path:
        """What was in it before the last change."""
        return self.path.with_name(f"{self.path.name}.old")

    def missing(self) -> list[str]:
        return [str(path) for path in (self.path, self.former) if not path.exists()]

    def is_needless(self, noted: Collection[str]) -> bool:
        """It was not there before the labs, and says what the shipped file says."""
        if not {str(self.path), str(self.former)} <= set(noted):
            return False
        if not self.path.exists():
            return self.former.exists()
        return _content(self.path) == _content(SHIPPED / self.path.relative_to(CONFIGURED))


def copy_of(place: str) -> Copy:
    """Such as zone=libvirt."""
    kind, _equals, name = place.partition("=")
    return Copy(kind, name)


def places_of(paths: Iterable[str]) -> list[str]:
    """Whose copies, or what was in them before, these paths are."""
    kinds = {name: kind for kind, name in DIRECTORIES.items()}
    return [
        f"{kinds[path.parent.name]}={path.name.removesuffix('.old').removesuffix('.xml')}"
        for path in map(Path, paths)
        if path.parent.name in kinds
    ]


def _content(path: Path) -> Any:
    """Whatever the order and the white space."""
    with suppress(OSError, ElementTree.ParseError):
        return _normalized(ElementTree.fromstring(path.read_text(encoding="utf-8")))  # noqa: S314 - root's own files
    return str(path)


def _normalized(element: ElementTree.Element) -> Any:
    text = " ".join((element.text or "").split())
    return element.tag, sorted(element.attrib.items()), text, sorted(map(_normalized, element))
