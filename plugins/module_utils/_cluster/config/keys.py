# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the keys of install-config.yaml and the types of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import (
    SECTIONS,
    TOP,
    WITH_OTHER_PLATFORMS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import invalid
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import WARNING, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be, nearest, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import inside
from ansible_collections.nometal.ipi.plugins.module_utils._core.secrecy import is_secret_key
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import (
    NEWEST,
    OLDEST,
    Release,
    release_of,
    release_text,
)

ANY, LIST = "any", "[]"
SCALARS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("text", lambda value: isinstance(value, (str, int, float))),  # the installer makes text of numbers
    "number": ("a whole number, without quotes", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "boolean": ("true or false, without quotes", lambda value: isinstance(value, bool)),
}


class Key(NamedTuple):
    type: str
    since: Release


def _key(written: str) -> Key:
    kind, _space, since = written.partition(" ")
    return Key(kind, release_of(since) or OLDEST)


KEYS = {section: {name: _key(written) for name, written in keys.items()} for section, keys in SECTIONS.items()}


def knows(release: Release, name: str, section: str = TOP) -> bool:
    key = KEYS[section].get(name)
    return key is not None and key.since <= release


def unknown(config: Mapping[str, Any], release: Release) -> Iterator[Finding]:
    """Warnings only for a release that is newer than the table."""
    for finding in _unknown(config, TOP, "", release):
        yield finding if release <= NEWEST else replace(finding, severity=WARNING)


def mistyped(config: Mapping[str, Any], release: Release) -> Iterator[Finding]:
    yield from _mistyped(config, TOP, "", release)


def _unknown(value: Any, kind: str, path: str, release: Release) -> Iterator[Finding]:
    if kind.endswith(LIST):
        for number, item in enumerate(value if isinstance(value, list) else []):
            yield from _unknown(item, kind[: -len(LIST)], f"{path}[{number}]", release)
    elif kind in KEYS and isinstance(value, Mapping):
        for name, item in value.items():
            where, key = inside(path, show_key(name)), KEYS[kind].get(name)
            if key and key.since <= release:
                yield from _unknown(item, key.type, where, release)
            elif kind not in WITH_OTHER_PLATFORMS:  # where another platform is refused as such
                yield invalid(where, _why(name, key, kind, release))


def _why(name: object, key: Key | None, section: str, release: Release) -> str:
    here = release_text(release)
    if key:
        return f"not available in release {here}; the first release with it is {release_text(key.since)}"
    close = nearest(str(name), [known for known, key in KEYS[section].items() if key.since <= release])
    return f"unknown key in release {here}; {f'did you mean {close}?' if close else 'remove it'}"


def _mistyped(value: Any, kind: str, path: str, release: Release) -> Iterator[Finding]:
    if value is None or kind == ANY:
        return
    if kind.endswith(LIST):
        if not isinstance(value, list):
            yield invalid(path, must_be("a list", _shown(path, value)))
            return
        for number, item in enumerate(value):
            yield from _mistyped(item, kind[: -len(LIST)], f"{path}[{number}]", release)
    elif kind in SCALARS:
        what, fits = SCALARS[kind]
        if not fits(value):
            yield invalid(path, must_be(what, _shown(path, value)))
    elif not isinstance(value, Mapping):
        yield invalid(path, must_be("a mapping", _shown(path, value)))
    else:
        for name, item in value.items():
            key = KEYS[kind].get(name)
            if key and key.since <= release:
                yield from _mistyped(item, key.type, inside(path, show_key(name)), release)


def _shown(path: str, value: Any) -> Any:
    return "(hidden)" if is_secret_key(path.rpartition(".")[2]) else value
