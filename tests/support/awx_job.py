"""Jobs as AWX runs them: ansible-runner, without a terminal, of a project that is read-only, in a home of its own.

jobs = Jobs(directory, inventory)
job = jobs.launch("site", {"lab_spec_nodes_workers_count": 2})
job.artifacts["nometal_lab"]["hypervisor"]["state"]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import awx_surveys
from support.checkout import MAKE_SECONDS, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READ_ONLY = 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && shift 2 && exec "$@"'


@dataclass(frozen=True)
class Job:
    succeeded: bool
    events: Sequence[Mapping[str, Any]]
    printed: str

    @property
    def artifacts(self) -> Mapping[str, Any]:
        return dict(self.events[-1]["event_data"].get("artifact_data", {}))

    @property
    def changed(self) -> int:
        return sum(self.events[-1]["event_data"]["changed"].values())

    def ran(self) -> set[str]:
        """The tasks that were started."""
        started = [event["event_data"] for event in self.events if event["event"] == "playbook_on_task_start"]
        return {data["task"] for data in started}

    @property
    def text(self) -> str:
        """What AWX shows of it."""
        return "\n".join(str(event.get("stdout", "")) for event in self.events) or self.printed


class Jobs:
    """Of one inventory; below a directory whose path is short enough for the sockets of ssh."""

    def __init__(self, below: Path, inventory: Path, **secrets: str) -> None:
        self.below, self.inventory, self.secrets = below, inventory, secrets
        for name in ("project", "env", "home", "facts"):
            (below / name).mkdir()

    def launch(self, template: str, answers: Mapping[str, Any] | None = None, options: str = "") -> Job:
        questions = awx_surveys.questions_of(template)
        variables = {**awx_surveys.variables_of(questions, answers or {}), **self.secrets}
        (self.below / "env/extravars").write_text(json.dumps(variables), encoding="utf-8")
        (self.below / "env/cmdline").write_text(options, encoding="utf-8")
        runner = Path(sys.executable).with_name("ansible-runner")
        what = ["--playbook", f"playbooks/{template}.yml", "--inventory", str(self.inventory), "--json"]
        enclosed = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(ROOT), str(self.below / "project")]
        run = subprocess.run(
            [*enclosed, str(runner), "run", str(self.below), *what],
            env={**os.environ, **self._environment(runner)},
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            timeout=MAKE_SECONDS,
        )
        events = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        return Job(run.returncode == 0, events, run.stdout)

    def _environment(self, runner: Path) -> dict[str, str]:
        return {
            "PATH": f"{runner.parent}:{os.environ['PATH']}",
            "HOME": str(self.below / "home"),
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.below / "facts"),
        }

    def kept(self) -> str:
        """All that was kept of all jobs, in events, artifacts and facts."""
        places = [self.below / "artifacts", self.below / "facts"]
        files = [path for place in places for path in sorted(place.rglob("*")) if path.is_file()]
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
