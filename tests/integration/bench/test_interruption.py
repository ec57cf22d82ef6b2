"""The interruption tool lets a sound playbook pass and finds what a killed run spoils."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import interruption, lab_host

if TYPE_CHECKING:
    from support.lab_host import LabHost

SOUND = """
- hosts: all
  gather_facts: false
  tasks:
    - {name: Not for this host, ansible.builtin.ping: , when: false}
    - {name: Write, ansible.builtin.copy: {content: whole, dest: /etc/one}}
    - {name: Look, ansible.builtin.ping: }
"""
HALF_DONE = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Believe the first half
      ansible.builtin.shell: {cmd: echo half > /etc/two; sleep 2; echo whole > /etc/two, creates: /etc/two}
"""
LOST_HANDLER = """
- hosts: all
  gather_facts: false
  tasks:
    - {name: Tell the handler, ansible.builtin.copy: {content: whole, dest: /etc/one}, notify: Late}
  handlers:
    - {name: Late, ansible.builtin.copy: {content: late, dest: /etc/late}}
"""


def playbook(tmp_path: Path, text: str) -> interruption.Playbook:
    path = tmp_path / "playbook.yml"
    path.write_text(text)
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    return interruption.Playbook(lambda host: [program, "-i", str(host.inventory()), str(path)], directory=tmp_path)


def bare() -> LabHost:
    return lab_host.start(layer="bare")


def test_a_sound_playbook_passes_at_every_task_that_does_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert interruption.interrupt_everywhere(playbook(tmp_path, SOUND), bare) == ""
    told = capsys.readouterr().err.splitlines()
    assert sorted(told) == ["  killed after 2/3 Write: ok", "  killed after 3/3 Look: ok"]


def test_a_half_done_change_is_found(tmp_path: Path) -> None:
    wrong = interruption.interrupt_everywhere(playbook(tmp_path, HALF_DONE), bare, during=True)
    assert wrong.startswith("Killed during task 1 (Believe the first half), then run again:\nfiles:\n  ~ /etc/two: ")


def test_a_handler_that_is_never_run_is_found(tmp_path: Path) -> None:
    wrong = interruption.interrupt_everywhere(playbook(tmp_path, LOST_HANDLER), bare, points=interruption.every_nth(2))
    assert wrong.startswith("Killed after task 1 (Tell the handler), then run again:\nfiles:\n  - /etc/late: ")
