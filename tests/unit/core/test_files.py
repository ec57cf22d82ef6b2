"""Owner and mode of what is made, whatever the umask; and that nothing is made in any other way."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import files

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGINS = Path(__file__).parents[3] / "plugins"
# Where files are made without the helpers, and why.
ON_THEIR_OWN = {
    "module_utils/_core/files.py": "the helpers",
    "module_utils/_observe/forwarding.py": "writes to /proc",
    "module_utils/_resources/router_advertisements/listening.py": "writes to /proc",
    "module_utils/_resources/veth/kernel.py": "writes to /proc",
    "module_utils/_bmc/supervisor.py": "a program of its own, which sets its umask",
    "module_utils/_resources/resolver/host_server.py": "a program of its own, which sets modes itself",
    "module_utils/_cluster/run/runner.py": "a program of its own, which sets its umask",
}
IN_GUESTS = "module_utils/_agent/"
MAKES = {"mkdir", "makedirs", "write_text", "write_bytes", "touch", "mkdtemp", "mkstemp"}


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    with files.umask(request.param):
        yield


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("any_umask")
def test_modes_are_those_that_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "a/b/file"
    files.write_whole(file, "text", 0o640)
    assert [mode(path) for path in (file, file.parent, file.parent.parent)] == [0o640, 0o755, 0o755]
    assert [path.name for path in file.parent.iterdir()] == ["file"]

    files.make_directory(tmp_path / "c/d", 0o700)
    assert [mode(tmp_path / "c"), mode(tmp_path / "c/d")] == [0o755, 0o700]
    files.make_directory(tmp_path / "c/d", 0o755)
    assert mode(tmp_path / "c/d") == 0o700
    files.own_directory(tmp_path / "c/d", 0o755)
    assert mode(tmp_path / "c/d") == 0o755

    for _time in range(2):
        with files.open_kept(tmp_path / "lock", 0o600) as lock:
            lock.write("x")
    assert (tmp_path / "lock").read_text() == "xx"
    assert mode(tmp_path / "lock") == 0o600


def test_a_group_that_the_directory_hands_down_is_not_ours(tmp_path: Path) -> None:
    os.chown(tmp_path, -1, 4)
    tmp_path.chmod(0o2775)
    files.write_whole(tmp_path / "file", "text", 0o664)
    assert (tmp_path / "file").stat().st_gid == os.getegid()


def test_what_a_killed_run_has_left_is_replaced_and_not_written_to(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    (tmp_path / ".file.new").symlink_to(elsewhere)
    files.write_whole(tmp_path / "file", "ours", 0o644)
    assert elsewhere.read_text() == "theirs"
    assert (tmp_path / "file").read_text() == "ours"


@pytest.mark.usefixtures("any_umask")
def test_a_file_belongs_to_whom_it_is_given_and_one_that_is_written_into_keeps_it(tmp_path: Path) -> None:
    access = files.Access("nobody", "daemon", 0o640)
    files.write_whole(tmp_path / "file", b"data", access)
    assert files.access_of(tmp_path / "file") == access
    assert files.has_access(tmp_path / "file", access)
    assert not files.has_access(tmp_path / "file", 0o640)
    files.write_into(tmp_path / "file", "more")
    assert (files.access_of(tmp_path / "file"), (tmp_path / "file").read_text()) == (access, "more")

    for _time in range(2):
        files.own_directory(tmp_path / "own", files.Access("nobody", "daemon", 0o750))
        assert str(files.access_of(tmp_path / "own")) == "nobody:daemon 0750"
    files.own_directory(tmp_path / "own", 0o755)
    assert files.has_access(tmp_path / "own", 0o755)


@pytest.mark.usefixtures("any_umask")
def test_a_tree_is_for_all_to_read(tmp_path: Path) -> None:
    files.write_tree(tmp_path / "tree", {"a/b": "text", "c": b"\x00"})
    assert [mode(tmp_path / "tree" / name) for name in ("a", "a/b", "c")] == [0o755, 0o644, 0o644]
    assert (tmp_path / "tree/c").read_bytes() == b"\x00"


def test_what_fails_while_it_is_written_leaves_the_former_file_alone(tmp_path: Path) -> None:
    files.write_whole(tmp_path / "file", "former", 0o644)

    def write_half() -> None:
        with files.whole(tmp_path / "file", 0o644) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "former")]


def test_nothing_is_made_without_the_helpers() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(PLUGINS.rglob("*.py")):
        name = str(path.relative_to(PLUGINS))
        if name not in ON_THEIR_OWN and not name.startswith(("plugin_utils/", "action/", IN_GUESTS)):
            calls = [
                node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and makes(node)
            ]
            found.update({name: [f"line {call.lineno}" for call in calls]} if calls else {})
    assert found == {}, "use _core/files.py: what is made like this has a mode that depends on the umask"


def makes(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and opens_for_writing(call.args[1:])
    if not isinstance(function, ast.Attribute):
        return False
    is_of_files = isinstance(function.value, ast.Name) and function.value.id == "files"
    if function.attr == "open":  # of a path, of os
        return opens_for_writing(call.args) or "O_CREAT" in ast.unparse(call)
    return function.attr in MAKES and not is_of_files


def opens_for_writing(arguments: list[ast.expr]) -> bool:
    modes = [each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(set(text) & set("wax") for text in modes)


@pytest.mark.parametrize(
    ("code", "does"),
    [
        ("path.mkdir(parents=True)", True),
        ("path.open('w')", True),
        ("open(path, 'a+')", True),
        ("os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)", True),
        ("tempfile.mkdtemp()", True),
        ("path.open(encoding='ascii')", False),
        ("path.open('r+b')", False),
        ("os.open(path, os.O_RDONLY)", False),
        ("files.make_directory(path)", False),
    ],
)
def test_what_makes_files_is_known(code: str, does: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert makes(call) == does
