"""What is done to take, restore and remove a checkpoint, what stands in the way, and how it is kept."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint import (
    conflicts,
    images,
    resource,
    state,
    store,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.state import (
    Checkpoint,
    Disk,
    Found,
    FoundDisk,
    FoundNode,
    Node,
    Unfinished,
    Wanted,
)

GIB = 1024**3
UUIDS = {name: f"c5d81e07-6a2b-4f39-b7c4-90e3fa1d582{number}" for number, name in enumerate(("a", "b", "c"))}
TAKE, RESTORE, REMOVE = (Wanted(each, "x") for each in ("present", "restored", "absent"))
RUNNING, STOPPING = replace(TAKE, running=True), replace(TAKE, stop=True)


def disk(name: str, *snapshots: str, **others: Any) -> FoundDisk:
    return FoundDisk(
        **{"path": f"/pool/{name}", "format": "qcow2", "size_bytes": GIB, "snapshots": snapshots, **others}
    )


def node(name: str, *snapshots: str, **others: Any) -> FoundNode:
    return FoundNode(**{"name": name, "uuid": UUIDS[name], "disks": (disk(f"{name}.qcow2", *snapshots),), **others})


def lab(*nodes: FoundNode, **others: Any) -> Found:
    return Found(nodes={each.name: each for each in nodes}, **others)


def kept(*names: str, **others: Any) -> Checkpoint:
    nodes = tuple(Node(name, UUIDS[name], disks=(Disk(f"{name}.qcow2", GIB, 3 * GIB),)) for name in names)
    return Checkpoint(**{"name": "x", "taken": "2026-11-19T11:02:03Z", "nodes": nodes, **others})


def steps(found: Found, wanted: Wanted) -> list[str]:
    return [str(step) for step in state.plan(found, wanted)]


def codes(found: Found, wanted: Wanted) -> list[str]:
    return [finding.code for finding in conflicts.conflicts(found, wanted)]


def text(found: Found, wanted: Wanted) -> str:
    return "\n".join(map(str, conflicts.conflicts(found, wanted)))


def test_a_checkpoint_of_nodes_that_are_off_is_written_when_all_of_it_is_there() -> None:
    taken = [
        "begin checkpoint x",
        "snapshot disk /pool/a.qcow2",
        "snapshot disk /pool/b.qcow2",
        "copy state of a",
        "copy state of b",
        "write checkpoint x",
        "end checkpoint x",
    ]
    assert steps(lab(node("a"), node("b")), TAKE) == taken
    assert steps(lab(node("a"), checkpoints={"x": kept("a")}), TAKE) == []


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [(RUNNING, "pause a, c", "resume a, c"), (STOPPING, "shut down a, c", "start a, c")],
)
def test_nodes_that_are_on_wait_together_until_it_is_written(wanted: Wanted, before: str, after: str) -> None:
    done = steps(lab(node("a", is_on=True), node("b"), node("c", is_on=True)), wanted)
    assert done[:2] == ["begin checkpoint x", before]
    assert done[-3:] == ["write checkpoint x", after, "end checkpoint x"]


def test_a_node_that_others_have_paused_stays_paused() -> None:
    found = lab(node("a", is_on=True, is_paused=True))
    assert not {"pause a", "resume a"} & set(steps(found, RUNNING))
    assert state.waiting_for(found, RUNNING).resume == ()


def test_a_restore_starts_what_was_on() -> None:
    checkpoint = kept("a", "b")
    on = replace(checkpoint, nodes=(replace(checkpoint.nodes[0], was_on=True), checkpoint.nodes[1]))
    found = lab(node("a"), node("b", is_on=True), checkpoints={"x": on})
    assert steps(found, replace(RESTORE, stop=True)) == [
        "begin restore x",
        "power off b",
        "revert disk /pool/a.qcow2",
        "revert disk /pool/b.qcow2",
        "restore state of a",
        "restore state of b",
        "start a",
        "end restore x",
    ]


def test_a_removal_leaves_other_snapshots_alone() -> None:
    found = lab(node("a", "nometal-x", "mine", "nometal-xy"), checkpoints={"x": kept("a")})
    assert steps(found, REMOVE) == [
        "withdraw checkpoint x",
        "remove snapshot of /pool/a.qcow2 (nometal-x)",
        "remove checkpoint x",
    ]
    assert steps(lab(node("a")), REMOVE) == []


def test_snapshots_of_the_same_name_are_all_removed_before_one_is_taken() -> None:
    """They are of a disk that was not attached when their checkpoint was removed."""
    remove = "remove snapshot of /pool/a.qcow2 (nometal-x)"
    found = lab(node("a", "nometal-x", "mine", "nometal-x"))
    assert steps(found, TAKE)[:4] == ["begin checkpoint x", remove, remove, "snapshot disk /pool/a.qcow2"]
    assert steps(replace(found, checkpoints={"x": kept("a")}), REMOVE)[1:3] == [remove, remove]
    assert steps(replace(found, half=("x",)), TAKE).count(remove) == 2


def test_a_checkpoint_that_cannot_be_restored_any_more_is_removed_with_the_note_of_its_restore() -> None:
    found = lab(node("a"), checkpoints={"x": kept("a", "b")}, unfinished=Unfinished(restore="x"))
    assert steps(found, REMOVE) == ["withdraw checkpoint x", "remove checkpoint x", "end restore of x"]
    assert "make checkpoint-remove NAME=x" in text(found, replace(TAKE, name="y"))
    killed = replace(found, checkpoints={}, half=("x",))
    assert steps(killed, REMOVE) == ["remove checkpoint x", "end restore of x"]
    assert steps(replace(killed, half=()), replace(TAKE, name="y"))[:2] == ["end restore of x", "begin checkpoint y"]


def test_what_a_run_has_left_that_was_killed_is_removed_first_and_nodes_go_on() -> None:
    waiting = Unfinished(checkpoint="y", resume=("a", "b"), start=("c", "gone"))
    nodes = (node("a", "nometal-y", is_on=True, is_paused=True), node("b", is_on=True), node("c"))
    found = lab(*nodes, half=("y",), unfinished=waiting)
    repaired = [
        "resume a",
        "remove snapshot of /pool/a.qcow2 (nometal-y)",
        "remove checkpoint y",
        "start c",
        "end checkpoint y",
    ]
    assert steps(found, REMOVE) == repaired
    assert steps(found, RUNNING)[: len(repaired) + 2] == [*repaired, "begin checkpoint x", "pause a, b, c"]


def test_a_guest_that_has_not_shut_down_yet_stays_noted_so_that_the_next_run_starts_it() -> None:
    found = lab(node("a"), node("b", is_on=True), half=("x",), unfinished=Unfinished(checkpoint="x", start=("a", "b")))
    assert [str(step) for step in state.giving_up(found)] == ["remove checkpoint x", "start a"]
    later = replace(found, half=(), nodes={"a": node("a", is_on=True), "b": node("b")})
    assert steps(later, REMOVE) == ["start b", "end checkpoint x"]
    assert [str(step) for step in state.giving_up(replace(later, nodes={"b": node("b")}))][-1] == "end checkpoint x"


def test_a_checkpoint_that_is_whole_stays_when_its_run_was_killed_afterwards() -> None:
    found = lab(node("a"), checkpoints={"x": kept("a")}, unfinished=Unfinished(checkpoint="x", start=("a",)))
    assert steps(found, TAKE) == ["start a", "end checkpoint x"]


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (lab(node("a"), node("b")), TAKE, []),
        (lab(node("a", is_on=True)), TAKE, ["nodes.on"]),
        (lab(node("a", is_on=True)), RUNNING, []),
        (lab(node("a", is_on=True)), STOPPING, []),
        (lab(node("a", is_on=True)), replace(RUNNING, stop=True), ["arguments.both"]),
        (lab(node("a"), node("b", is_on=True), cluster="demo-4xk2p"), STOPPING, ["cluster.on"]),
        (lab(node("a"), cluster="demo-4xk2p"), STOPPING, []),
        (lab(node("a", is_on=True), cluster="demo-4xk2p"), RUNNING, []),
        (lab(), TAKE, ["nodes.none"]),
        (
            lab(node("a", persistent=False, is_saved=True, lacking=("l.qcow2",))),
            TAKE,
            ["vm.transient", "vm.saved", "disk.lacking"],
        ),
        (lab(node("a", disks=(disk("a.raw", format="raw"),))), TAKE, ["disk.format"]),
        (lab(node("a"), installs=True), TAKE, ["installation.runs"]),
        (
            lab(node("a"), checkpoints={"y": kept("a", name="y")}, unfinished=Unfinished(restore="y")),
            TAKE,
            ["restore.interrupted"],
        ),
        (lab(node("a"), unfinished=Unfinished(restore="y")), TAKE, []),
        (
            lab(node("a", "nometal-x"), checkpoints={"x": kept("a")}, unfinished=Unfinished(restore="x")),
            REMOVE,
            ["restore.interrupted"],
        ),
        (lab(node("a"), checkpoints={"x": kept("a")}, unfinished=Unfinished(restore="x")), REMOVE, []),
        (lab(node("a"), unfinished=Unfinished(restore="x")), REMOVE, []),
        (lab(node("a"), unfinished=Unfinished(restore="y")), REMOVE, []),
        (lab(node("a")), RESTORE, ["checkpoint.missing"]),
        (lab(node("a", "nometal-x"), checkpoints={"x": kept("a")}, unfinished=Unfinished(restore="y")), RESTORE, []),
        (lab(node("a", "nometal-x", is_on=True), checkpoints={"x": kept("a")}), RESTORE, ["nodes.on"]),
        (lab(node("a", "nometal-x", is_on=True), checkpoints={"x": kept("a")}), replace(RESTORE, stop=True), []),
        (lab(node("b", "nometal-x"), checkpoints={"x": kept("a")}), RESTORE, ["nodes.missing", "nodes.added"]),
        (lab(node("a", "nometal-x", uuid=UUIDS["b"]), checkpoints={"x": kept("a")}), RESTORE, ["vm.other"]),
        (lab(node("a"), checkpoints={"x": kept("a")}), RESTORE, ["disk.other"]),
        (lab(node("a", "nometal-y"), checkpoints={"x": kept("a")}), RESTORE, ["disk.other"]),
    ],
)
def test_what_is_refused(found: Found, wanted: Wanted, expected: list[str]) -> None:
    assert codes(found, wanted) == expected


KILLED = Unfinished(checkpoint="y", resume=("a",), start=("b",))
WAITING = (node("a", "nometal-x", is_on=True, is_paused=True), node("b", "nometal-x"))


@pytest.mark.parametrize("wanted", [TAKE, RESTORE])
def test_nodes_that_wait_for_a_run_that_was_killed_are_named_with_what_has_them_go_on(wanted: Wanted) -> None:
    found = lab(*WAITING, checkpoints={"x": kept("a", "b")} if wanted is RESTORE else {}, unfinished=KILLED)
    about = "checkpoint x: {} since a run that took checkpoint y was killed. `make checkpoint-remove NAME=y` has"
    for each in ("a is paused", "b is switched off"):
        assert about.format(each) in text(found, wanted)
    assert codes(found, wanted) == ["nodes.waiting", "nodes.waiting"]
    assert steps(found, replace(REMOVE, name="y")) == ["resume a", "start b", "end checkpoint y"]
    others = replace(found, nodes={**found.nodes, "c": node("c", persistent=False)})
    assert codes(others, RUNNING if wanted is TAKE else RESTORE)[:2] == ["nodes.waiting", "nodes.waiting"]


def test_what_has_nodes_go_on_leaves_a_checkpoint_that_is_whole_and_is_done_during_an_installation() -> None:
    whole = lab(*WAITING, checkpoints={"y": kept("a", "b", name="y")}, unfinished=KILLED, installs=True)
    assert "`make checkpoint NAME=y` has what waits go on" in text(whole, TAKE)
    half = replace(whole, checkpoints={})
    for found, wanted in ((whole, replace(TAKE, name="y")), (half, replace(REMOVE, name="y"))):
        assert codes(found, wanted) == []
        assert steps(found, wanted) == ["resume a", "start b", "end checkpoint y"]


def test_disks_that_differ_are_named() -> None:
    disks = (disk("a.qcow2", "nometal-x", size_bytes=2 * GIB), disk("new.qcow2"))
    checkpoint = kept("a")
    lost = replace(checkpoint.nodes[0], disks=(*checkpoint.nodes[0].disks, Disk("lost.qcow2", GIB)))
    found = lab(node("a", disks=disks), checkpoints={"x": replace(checkpoint, nodes=(lost,))})
    told = text(found, RESTORE)
    assert "a: disk a.qcow2 had 1GiB then, and has 2GiB now" in told
    assert "a: disk lost.qcow2 is missing" in told
    assert "a: disk new.qcow2 was added after checkpoint x" in told


def test_a_message_says_what_to_do() -> None:
    assert text(lab(node("a", is_on=True), node("b", is_on=True)), TAKE) == (
        "checkpoint x: a and b are switched on. Switch them off first, for instance by `make stop`. Or "
        "have them shut down, and started again, by `stop: true` (-e checkpoint_stop=true), or paused for a moment "
        "by `running: true` (-e checkpoint_running=true)."
    )
    cluster = text(lab(node("a", is_on=True), cluster="demo-4xk2p"), TAKE)
    assert "checkpoint_stop" not in cluster
    assert "Or have them paused for a moment by `running: true`" in cluster
    there = {name: kept("a", name=name) for name in ("one", "two")}
    assert "there is none of this name (there is: one and two)" in text(lab(node("a"), checkpoints=there), RESTORE)


def test_a_removal_warns_of_disks_that_keep_their_snapshots() -> None:
    found = lab(node("a", lacking=("l.qcow2",)), checkpoints={"x": kept("a")})
    [about_disk] = conflicts.warnings(found, REMOVE)
    assert "keep their snapshot, if they have one: a: l.qcow2" in about_disk
    assert conflicts.warnings(found, replace(REMOVE, name="y")) == []


def test_warnings_name_disks_that_are_no_part_of_it_and_another_cluster() -> None:
    [about_disk] = conflicts.warnings(lab(node("a", others=("/dev/sdb",))), TAKE)
    assert "a: /dev/sdb" in about_disk
    found = lab(node("a", "nometal-x"), checkpoints={"x": kept("a")}, cluster="demo-4xk2p")
    [about_cluster] = conflicts.warnings(found, RESTORE)
    assert "no cluster" in about_cluster
    assert "demo-4xk2p" in about_cluster
    assert conflicts.warnings(found, TAKE) == []


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../up", "a b", "x" * 61, "-c"])
def test_names_that_are_refused(name: str) -> None:
    assert not state.NAME.accepts(name)


def test_what_a_checkpoint_holds_is_at_most_the_size_of_the_disks() -> None:
    assert kept("a", "b").held_bytes == 2 * GIB


def test_a_checkpoint_is_there_once_it_is_written(tmp_path: Path) -> None:
    kept_in = store.Store(tmp_path, "demo")
    kept_in.begin(Unfinished(checkpoint="x", resume=("a",)))
    kept_in.make("x")
    assert (kept_in.checkpoints(), kept_in.half()) == ({}, ("x",))
    assert kept_in.unfinished() == Unfinished(checkpoint="x", resume=("a",))
    kept_in.write(kept("a"))
    assert (kept_in.checkpoints(), kept_in.half()) == ({"x": kept("a")}, ())
    kept_in.write(kept("a", name="before-x", taken="2026-11-18T11:02:03Z"))
    assert [each.name for each in kept_in.in_order()] == ["before-x", "x"]
    kept_in.remove("before-x")
    kept_in.end()
    assert kept_in.unfinished() == Unfinished()
    kept_in.withdraw("x")
    assert kept_in.half() == ("x",)
    kept_in.remove("x")
    assert [path.name for path in (tmp_path / "labs/demo").iterdir()] == []


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    kept_in = store.Store(tmp_path, "demo")
    kept_in.begin(Unfinished(checkpoint="x"))
    kept_in.make("x")
    kept_in.write(kept("a"))
    directory = tmp_path / "labs/demo/checkpoints"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (directory, *directory.rglob("*"))}
    assert modes == {"checkpoints": 0o700, "x": 0o700, "checkpoint.json": 0o600, "unfinished.json": 0o600}


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    record = tmp_path / "labs/demo/checkpoints/x/checkpoint.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    with pytest.raises(OperatorError, match=str(record)):
        store.Store(tmp_path, "demo").checkpoints()
    store.Store(tmp_path, "demo").write(kept("a", name="whole"))
    [whole], [damaged] = store.Store(tmp_path, "demo").readable()
    assert whole.name == "whole"
    assert damaged.startswith(f"{record} has been damaged: ")


def test_state_is_put_back_as_it_was_with_modes_and_what_was_not_there_goes(tmp_path: Path) -> None:
    own, copy, live = tmp_path / "own", tmp_path / "copy", tmp_path / "live"
    (own / "tpm2").mkdir(parents=True)
    (own / "tpm2/state").write_text("then")
    (own / "tpm2/state").chmod(0o640)
    store.copy(own, copy)
    (live / "tpm2").mkdir(parents=True)
    (live / "tpm2/state").write_text("now")
    (live / "tpm2/more").write_text("now")
    for _again in range(2):
        store.replace_by(copy, live)
        assert sorted(path.name for path in live.rglob("*")) == ["state", "tpm2"]
        assert (live / "tpm2/state").read_text() == "then"
        assert (live / "tpm2/state").stat().st_mode & 0o777 == 0o640
    store.replace_by(tmp_path / "none", live)
    assert not live.exists()
    (tmp_path / "file").write_text("now")
    store.replace_by(tmp_path / "none", tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_state_is_put_back_whole_and_before_a_restore_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut leaves the file as it was before, or as it was kept."""
    kept_in, live = tmp_path / "kept", tmp_path / "live"
    for path, content in ((kept_in, "then"), (live, "now")):
        path.mkdir()
        for name in ("vars.fd", "tpm2/state"):
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_text(content)
    (kept_in / "vars.fd").chmod(0o640)
    synced, before = [], (live / "vars.fd").stat().st_ino
    monkeypatch.setattr("os.fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    for name in ("vars.fd", "tpm2"):
        store.replace_by(kept_in / name, live / name)
    assert (live / "vars.fd").stat().st_ino != before
    assert (live / "vars.fd").stat().st_mode & 0o777 == 0o640
    assert {live / ".vars.fd.new", live / "tpm2/state", live / "tpm2", live} <= set(synced)
    assert sorted(path.name for path in live.rglob("*")) == ["state", "tpm2", "vars.fd"]


def test_an_owner_without_a_name_is_kept(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("then")
    os.chown(tmp_path / "own", 64999, 64998)
    store.copy(tmp_path / "own", tmp_path / "copy")
    status = (tmp_path / "copy").stat()
    assert (status.st_uid, status.st_gid) == (64999, 64998)


def test_which_nodes_a_stop_has_switched_off_is_kept_too(tmp_path: Path) -> None:
    kept_in, stopped = store.Store(tmp_path, "demo"), tmp_path / "labs/demo/stopped.json"
    for name, text in (("running", None), ("off", "then")):
        kept_in.make(name)
        if text:
            stopped.write_text(text)
        kept_in.keep_stop(name)
    stopped.write_text("now")
    kept_in.restore_stop("off")
    assert stopped.read_text() == "then"
    kept_in.restore_stop("running")
    assert not stopped.exists()


@pytest.mark.parametrize(("declared", "asked"), [("qcow2", "qcow2"), ("raw", "raw"), ("", "raw")])
def test_the_format_of_a_disk_is_what_its_vm_declares_and_not_what_a_guest_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, asked: str
) -> None:
    """Otherwise a guest would have its host open what the header of a qcow2 image names."""
    (tmp_path / "disk").touch()

    def answer(*command: str) -> str:
        assert command[command.index("-f") + 1] == asked
        return json.dumps({"format": asked, "virtual-size": GIB})

    monkeypatch.setattr(images, "run", answer)
    assert images.look(str(tmp_path / "disk"), declared).format == asked


@pytest.mark.parametrize("wanted", [TAKE, RESTORE, REMOVE])
def test_check_mode_works_on_a_host_without_libvirt(wanted: Wanted, tmp_path: Path) -> None:
    uri = f"qemu+unix:///system?socket={tmp_path}/none"
    params = {"lab": "demo", "home": str(tmp_path), "bmc_home": str(tmp_path), "libvirt_uri": uri}
    given = {**params, "name": "x", "state": wanted.state, "running": False, "stop": False, "stop_timeout": 1}
    foreseen = resource.LabCheckpoint.run(given, check_mode=True)
    assert (foreseen["checkpoint"], foreseen["warnings"]) == (None, [])
    assert foreseen["changed"] is (wanted is TAKE)


def test_a_medium_is_kept_when_others_remove_theirs(tmp_path: Path) -> None:
    medium, own = tmp_path / "image.iso", tmp_path / "kept/medium"
    medium.write_text("image")
    store.link(medium, own)
    medium.unlink()
    store.link(own, medium)
    assert medium.read_text() == "image"
