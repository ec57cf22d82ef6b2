"""How the service is kept: what the unit says, and what is quoted of a service that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import layout, supervised, supervisor
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import Endpoint
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab, Media
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.serving import Serving
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.units import guarded, units

BEGIN, END = f"12:00 {supervisor.BEGIN}", f"12:01 {supervisor.END} with 1; it is started again"
MEDIA = "/var/lib/libvirt/images/nometal-demo-media"


def lab(home: Path = Path("/var/lib/nometal/bmc"), *, listen: bool = True) -> Lab:
    return Lab(
        name="demo",
        listen=(Endpoint("192.168.126.1", 8000),) if listen else (),
        tls=listen,
        names=(),
        nodes=(),
        media=Media(1, 1),
        user="nometal-bmc",
        home=home,
        software=Path("/opt/nometal/bmc"),
        libvirt_uri="qemu:///system",
    )


def test_the_unit_guards_user_and_confinement() -> None:
    for unit, user in zip(units(lab()), ("nometal-bmc-broker", "nometal-bmc")):
        kept = guarded(unit.text)
        assert (kept["User"], kept["CapabilityBoundingSet"], kept["ProtectSystem"]) == (user, "", "strict")


def test_by_ipmi_there_are_no_media_and_no_certificates() -> None:
    for listen in (True, False):
        made = lab(listen=listen)
        broker, service = units(made)
        assert (MEDIA in broker.text) is listen
        assert MEDIA not in service.text
        assert (Path(MEDIA) in layout.directories(made)) is listen
        assert (made.ca.parent in layout.directories(made)) is listen


@pytest.mark.parametrize(
    ("log", "deaths", "words"),
    [
        ([], 0, []),
        (["old", BEGIN], 0, []),
        (["old", END, BEGIN, "one"], 0, ["one"]),
        (["old", END, BEGIN, "one", END], 1, ["one", END]),
        ([BEGIN, "one", END, "two", END, "three"], 2, ["two", END]),
        (["its beginning was moved away", END, "two"], 1, ["its beginning was moved away", END]),
    ],
)
def test_only_the_last_start_is_quoted(log: list[str], deaths: int, words: list[str]) -> None:
    text = "".join(f"{line}\n" for line in log)
    for torn in ("", "12:02 hal"):
        assert supervised.of_last_start(text + torn) == words
        assert supervised.deaths_in(text + torn) == deaths


def test_a_service_is_serving_when_it_has_answered(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    serving = Serving(lab(tmp_path))
    seen = []
    for act in (serving.begin, lambda: serving.note("digest"), serving.begin):
        act()
        seen.append((serving.has_answered, serving.digest == "digest"))
    assert seen == [(False, False), (True, True), (True, False)]
