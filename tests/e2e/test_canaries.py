"""Nothing that is not the lab's is changed: not by site.yml, not by runs that are killed, not by the teardown."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest
from support import canaries, checkout, interruption, lab_host, stranger
from support.checkout import run_playbook
from support.failures import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.canaries import Canary
    from support.lab_host import LabHost

# It draws after how many changes a run is killed. site.yml makes a dozen, teardown.yml half of that.
SEED = 10


@dataclass
class Watch:
    """All canaries that are planted, and what happened to them."""

    host: LabHost
    inventory: Path
    planted: list[Canary] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    harmed: list[str] = field(default_factory=list)

    def plant(self, more: Sequence[Canary]) -> None:
        try:
            self.known.update(canaries.plant(self.host, more))
        except CommandFailed as failed:  # because a run has failed, which is noted already
            self.harmed.append(f"not planted: {failed}")
        else:
            self.planted += more

    def look(self, after: str) -> None:
        """Each harm is noted once."""
        now = canaries.states(self.host, self.planted)
        for name, state in now.items():
            if state != self.known[name]:
                lines = unified_diff(self.known[name].splitlines(), state.splitlines(), n=0, lineterm="")
                self.harmed.append(f"{after}: {name}:\n" + "\n".join(list(lines)[2:]))
                self.known[name] = state

    def run(self, playbook: str, *, refused: bool = False) -> str:
        """To the end, which is as it should be, or noted."""
        run = run_playbook(playbook, self.inventory)
        if (run.returncode != 0) != refused:
            self.harmed.append(f"{playbook}.yml ended with {run.returncode}:\n{errors(run.stdout)}")
        self.look(f"{playbook}.yml, refused" if refused else f"{playbook}.yml")
        return run.stdout

    def run_until_killed(self, name: str, changes: int) -> str:
        """Killed as soon as so many of its tasks have reported a change."""
        playbook = interruption.Playbook(lambda _host: checkout.command(name, self.inventory), directory=checkout.ROOT)
        code, output, _tasks = interruption.run(playbook, self.host, after_changes=changes)
        if code != -signal.SIGKILL:
            self.harmed.append(f"{name}.yml ended with {code} before it had made {changes} changes:\n{errors(output)}")
        interruption.end_sessions(self.host)
        self.look(f"{name}.yml, killed after {changes} changes")
        return output

    def is_named(self, said: str, report: str, names: Sequence[Canary]) -> None:
        unnamed = [canary for canary in names if canary.named not in said]
        self.harmed += [f"{report} does not name {canary.named}: {canary.name}" for canary in unnamed]

    def remove(self, gone: Sequence[Canary]) -> None:
        for canary in reversed(gone):
            self.host.run(canary.remove, check=False)
        self.planted = [canary for canary in self.planted if canary not in gone]


def errors(output: str) -> str:
    return "\n".join(line for line in output.splitlines() if line.startswith(("[ERROR]", "fatal:", "PLAY RECAP")))


@pytest.mark.long
def test_what_is_not_the_labs_is_neither_changed_nor_removed(tmp_path: Path) -> None:
    draw = random.Random(SEED)  # noqa: S311 - no secret
    with lab_host.start(layer="peers") as host:
        stranger.use_libvirt(host)
        watch = Watch(host, checkout.inventory(host, tmp_path))
        watch.plant(canaries.before())
        for changes in draw.choices(range(1, 6), k=2):  # the second run begins where the first was killed
            watch.run_until_killed("site", changes)
        watch.run("site")
        watch.plant(canaries.inside())
        watch.run("site")

        users = canaries.users()
        watch.plant(users)
        said = watch.run("teardown", refused=True)
        watch.is_named(said, "the refusal", users)
        watch.remove(users)

        watch.plant(canaries.alike())
        said = watch.run_until_killed("teardown", draw.randrange(1, 5)) + watch.run("teardown")
        watch.is_named(said, "the teardown's report", watch.planted)
        assert not watch.harmed, "\n".join(watch.harmed)
