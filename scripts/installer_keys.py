#!/usr/bin/env python3
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 - the path of the collection is set first
"""Compare the keys of install-config.yaml that are known here with the Go types in a checkout of the installer.

scripts/installer_keys.py ~/src/installer 4.20
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(TREE / "playbooks/collections"))

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import (
    TOP,
    WITH_OTHER_PLATFORMS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.keys import ANY, KEYS, LIST
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release, release_of

TYPES = "pkg/types"
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r'^\s*(?:\w+\s+)?([\w.*\[\]]+)\s+`[^`]*json:"([^",]*)(,inline)?[^"]*"', re.MULTILINE)
NAMED_TEXT = re.compile(r"^type (\w+) string$", re.MULTILINE)
INLINE = {"apiVersion": "string", "kind": "string"}
"""The keys of metav1.TypeMeta, which is not in the checkout's own types."""
NUMBER = re.compile(r"u?int(8|16|32|64)?")

Struct = dict[str, str]
"""Go types by key."""


class Package:
    def __init__(self, directory: Path) -> None:
        files = [file for file in sorted(directory.glob("*.go")) if not file.name.endswith("_test.go")]
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        self.structs = {name: _fields(body) for name, body in STRUCT.findall(text)}
        self.texts = set(NAMED_TEXT.findall(text))


def _fields(body: str) -> Struct:
    found: Struct = {}
    for kind, name, inline in FIELD.findall(body):
        found.update(INLINE if inline else {name: kind})
    return found


class Comparison:
    def __init__(self, checkout: Path, release: Release) -> None:
        self._root = checkout / TYPES
        self._release = release
        self._seen: set[str] = set()

    def differences(self) -> Iterator[str]:
        yield from self._section(TOP, "", "InstallConfig")

    def _section(self, section: str, package: str, name: str) -> Iterator[str]:
        own = Package(self._root / package).structs.get(name)
        if own is None or section in self._seen:
            return
        self._seen.add(section)
        known = {key: found.type for key, found in KEYS[section].items() if found.since <= self._release}
        for key in known.keys() - own.keys():
            yield f"{section}: {key} is known here, and {name} of the installer does not have it"
        for key in own:
            if key in known:
                yield from self._key(f"{section}: {key}", known[key], package, own[key])
            elif section not in WITH_OTHER_PLATFORMS:
                yield f"{section}: {key} of the installer is not known here"

    def _key(self, where: str, known: str, package: str, go_type: str) -> Iterator[str]:
        kind = go_type.replace("*", "")
        if known == ANY:
            return
        if known.endswith(LIST) != kind.startswith("[]"):
            yield f"{where} is {known} here, and {go_type} in the installer"
            return
        known, kind = known.removesuffix(LIST), kind.removeprefix("[]")
        prefix, _dot, name = kind.rpartition(".")
        other = prefix or package
        if known in KEYS:
            yield from self._section(known, other, name)
        elif self._scalar(other, name) not in (known, None):
            yield f"{where} is {known} here, and {go_type} in the installer"

    def _scalar(self, package: str, name: str) -> str | None:
        """None if the type is not among the installer's own."""
        if name in ("string", "IPNet") or name in Package(self._root / package).texts:
            return "text"
        if name == "bool":
            return "boolean"
        return "number" if NUMBER.fullmatch(name) else None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="checkout of the installer, at the branch of the release")
    parser.add_argument("release", help="such as 4.20")
    options = parser.parse_args(arguments)
    release = release_of(options.release)
    if release is None or not (options.checkout / TYPES / "installconfig.go").is_file():
        parser.error(f"{options.checkout} must have {TYPES}/installconfig.go, and the release be given as 4.20")
    found = sorted(Comparison(options.checkout, release).differences())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
