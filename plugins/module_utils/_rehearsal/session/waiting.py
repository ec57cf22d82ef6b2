# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a guest that says nothing is waited for: as long as it makes progress, but not for ever.

Pure: the time and what is seen of the guest are given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

QUIET_SECONDS = 90.0
WHOLE = 4
"""So many times as long as without any progress."""
LONGEST_SECONDS = 1500.0
"""Of a whole rehearsal."""
BUSY = 0.25
"""Of one processor, used or waited for. A guest whose processors sleep still has their clocks to serve."""


@dataclass(frozen=True)
class Signs:
    """Of life, as the host sees them. They only grow until the guest is started anew."""

    output: int = 0
    """Bytes on its console."""
    moved: int = 0
    """Bytes that it has read from its disks and written to them."""
    computed: float = 0.0
    """Seconds of processors that it has used."""
    starved: float = 0.0
    """Seconds for which it wanted a processor while the host was busy with others."""


@dataclass(frozen=True)
class Limits:
    quiet: float
    """Seconds without any sign of life."""
    computing: float
    """Seconds of processor time without output or disk access: a busy loop. A starved guest takes longer for them."""
    whole: float
    """Seconds in all."""


@dataclass(frozen=True)
class Wait:
    since: float
    looked: float
    seen: Signs
    alive: float
    """When it last gave any sign of life."""
    computed: float
    """Of processor time, at the last output or disk access."""


def limits(patience: float, seconds: float = QUIET_SECONDS) -> Limits:
    return Limits(seconds * patience, seconds * patience, seconds * patience * WHOLE)


def begun(now: float, seen: Signs | None = None) -> Wait:
    first = seen or Signs()
    return Wait(since=now, looked=now, seen=first, alive=now, computed=first.computed)


def continued(wait: Wait, now: float, seen: Signs | None) -> Wait:
    """After another look. None: there was nothing to be seen, as of a guest that is off."""
    if seen is None:
        return replace(wait, looked=now)
    if _moves(wait.seen, seen):
        return replace(wait, looked=now, seen=seen, alive=now, computed=seen.computed)
    wanted = seen.computed - wait.seen.computed + seen.starved - wait.seen.starved
    is_busy = wanted > 0 and wanted >= BUSY * (now - wait.looked)
    return replace(wait, looked=now, seen=seen, alive=now if is_busy else wait.alive)


def over(wait: Wait, now: float, limit: Limits) -> str:
    """Why it is not waited for any more; empty as long as it is."""
    if now - wait.since >= limit.whole:
        return f"it was waited for {limit.whole:.0f} s, although something still went on in it"
    if now - wait.alive >= limit.quiet:
        return f"it has done nothing for {limit.quiet:.0f} s: no output, no disk access, no computing"
    if wait.seen.computed - wait.computed >= limit.computing:
        return f"it has computed for {limit.computing:.0f} s of processor time without output or disk access"
    return ""


def _moves(before: Signs, now: Signs) -> bool:
    """Also one that was started anew, whose counters begin again."""
    anew = now.computed < before.computed or now.moved < before.moved or now.output < before.output
    return anew or now.output > before.output or now.moved > before.moved
