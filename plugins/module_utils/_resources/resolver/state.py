# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    OperatorError,
    noting,
    refuse_all,
    words_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import cluster_name, interface_name
from ansible_collections.nometal.ipi.plugins.module_utils._core.zones import domain, reverse_zones, server
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.lookup import complaint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    Part = TypeVar("Part")

    class Means(Protocol):
        """One way in which a host can be told where to ask for a lab's names."""

        name: str

        def wanted(self, lab: Lab) -> Settings: ...

        def read(self, lab: Lab) -> Settings | None: ...

        def write(self, lab: Lab) -> None: ...

        def apply(self, lab: Lab, *, anew: bool) -> None:
            """Anew: also where all seems to be in force, for the host does not know the lab's names."""

        def evidence(self, lab: Lab) -> str:
            """Where to look when the host does not know the lab's names."""

        def remove(self, lab: Lab) -> None: ...

        def held(self) -> Iterator[tuple[str, Sequence[str]]]:
            """Every lab that this means knows on this host, with its domains."""


@dataclass(frozen=True)
class Lab:
    """Names below these domains are to be asked for at these servers, as long as the link is there."""

    owner: str
    link: str
    domains: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    # Some that the lab's servers know, by which it is seen whether the host knows them too.
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """What one means holds of a lab: the lines of the lab's file, and whether they hold now and will hold again."""

    lines: tuple[str, ...]
    kept: bool = True
    in_force: bool = True


@dataclass(frozen=True)
class HostResolver:
    """By the name of the means. More than one has something of the lab after the host has gone over to another."""

    means: Mapping[str, Settings]


def plan(current: HostResolver, desired: HostResolver) -> Sequence[Step]:
    steps = [Step("remove", name) for name in current.means if name not in desired.means]
    for name, wanted in desired.means.items():
        found = current.means.get(name)
        as_written = found is not None and (found.lines, found.kept) == (wanted.lines, wanted.kept)
        if not as_written:
            steps.append(Step("write", name))
        if not (as_written and found is not None and found.in_force):
            steps.append(Step("apply", name))
    return steps


class SplitDnsPort:
    """What this host has been told of one lab's names, and whether that has the effect that it should have."""

    def __init__(self, lab: Lab, means: Mapping[str, Means]) -> None:
        self._lab = lab
        self._means = means
        self._without_effect = False

    def read(self) -> HostResolver:
        found = {name: means.read(self._lab) for name, means in self._means.items()}
        there = {name: settings for name, settings in found.items() if settings is not None}
        if any(settings.in_force for settings in there.values()):
            self._without_effect = bool(complaint(self._lab))
        return HostResolver({name: self._judged(settings) for name, settings in there.items()})

    def _judged(self, settings: Settings) -> Settings:
        return replace(settings, in_force=settings.in_force and not self._without_effect)

    def apply(self, step: Step) -> None:
        means = self._means[step.target]
        try:
            if step.verb == "write":
                means.write(self._lab)
            elif step.verb == "remove":
                means.remove(self._lab)
            else:
                means.apply(self._lab, anew=self._without_effect)
        except OSError as error:
            raise OperatorError(words_of(error)) from error


def lab_from(params: dict[str, Any]) -> Lab:
    """All that is wrong is said at once. To remove a lab, only its name is needed."""
    problems: list[str] = []
    present = params["state"] == "present"
    _sound(_owner, [params["lab"]], problems)
    _sound(_link, [params["link"]] if params["link"] is not None else [], problems)
    domains = _sound(domain, params["domains"] if present else [], problems)
    zones = _sound(reverse_zones, params["subnets"] if present else [], problems)
    servers = _sound(server, params["servers"] if present else [], problems)
    names = _sound(domain, params["names"] if present else [], problems)
    if present and not (params["servers"] and (params["domains"] or params["subnets"])):
        problems.append(f"Of lab {params['lab']}, servers and at least one of domains and subnets must be given.")
    refuse_all(problems)
    return Lab(
        owner=params["lab"],
        link=params["link"] or "",
        domains=tuple(dict.fromkeys([*domains, *chain.from_iterable(zones)])),
        servers=tuple(dict.fromkeys(servers)),
        names=tuple(dict.fromkeys(names)),
    )


def _sound(read: Callable[[str], Part], texts: Iterable[str], problems: list[str]) -> list[Part]:
    found = []
    for text in texts:
        with noting(problems):
            found.append(read(text))
    return found


def _owner(text: str) -> str:
    return _named("lab", cluster_name, text)


def _link(text: str) -> str:
    return _named("link", interface_name, text)


def _named(key: str, convert: Callable[[str], str], text: str) -> str:
    try:
        return convert(text)
    except ValueError as error:
        raise OperatorError(f"{key}: {error}.") from error


def refuse_taken_domains(lab: Lab, held: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Of two labs with one domain, each would be asked for names that only the other has."""
    taken = sorted({(other, domain) for other, theirs in held for domain in theirs if domain in lab.domains})
    problems = [f"{domain} is lab {other}'s on this host already." for other, domain in taken if other != lab.owner]
    if problems:
        cure = "Give each lab domains and subnets of its own (subnets in one /24 share its reverse zone)"
        problems.append(f"{cure}, or remove a lab that is no longer there with state=absent and its name as lab.")
        raise OperatorError("\n".join(problems))


def dnsmasq_lines(lab: Lab) -> tuple[str, ...]:
    return tuple(f"server=/{domain}/{server}" for domain in lab.domains for server in lab.servers)


def dnsmasq_domains(file: Path) -> tuple[str, ...]:
    """Of a file with such lines."""
    return tuple(dict.fromkeys(re.findall(r"^server=/([^/\n]+)/", file.read_text(encoding="utf-8"), re.MULTILINE)))


def text_of(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def read_lines(path: Path) -> tuple[str, ...] | None:
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.exists() else None
