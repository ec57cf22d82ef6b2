"""The service without a lab, as the README has it run: libvirt's test driver, on this machine's loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
LOGIN = ("operator", "example-password")
# Which views of sushy-tools there are, and which of them are still its own.
LIST_VIEWS = """
import json, sys
from sushy_tools.emulator.main import app
stock = dict(app.view_functions)
from nometal_bmc.app import make_app
from nometal_bmc.config.reading import CurrentConfig
views = make_app(CurrentConfig(sys.argv[1])).view_functions
print(json.dumps({name: views[name] is view for name, view in stock.items()}))
"""


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """The README's, with a free port and directories of its own."""
    texts = re.findall(r"^```json\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    broker, text = (text.replace("/tmp/nometal-bmc", str(tmp_path)) for text in texts)  # noqa: S108 - the README's
    (tmp_path / "broker.json").write_text(broker)
    found: dict[str, Any] = json.loads(text)
    (tmp_path / "media").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found["listen"][0]["port"] = taken.getsockname()[1]
    return found


@pytest.fixture
def config_file(config: dict[str, Any], tmp_path: Path) -> Path:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    return file


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}


@contextmanager
def service(config_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = config_file.with_name("log")
    broker = python("-m", "nometal_bmc.broker", str(config_file.with_name("broker.json")))
    with (
        log.open("wb") as output,
        subprocess.Popen(broker, env=ENVIRONMENT, stdout=output, stderr=output) as beside,
        subprocess.Popen(
            python("-m", "nometal_bmc", str(config_file)), env=ENVIRONMENT, stdout=output, stderr=output
        ) as process,
    ):
        try:
            wait_until("both serve", lambda: log.read_text().count("Serving at") > 1 or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield process
        finally:
            process.kill()
            beside.kill()


def test_it_answers_with_the_config_of_the_readme_and_ends_in_good_order(
    config: dict[str, Any], config_file: Path
) -> None:
    [system] = config["systems"]
    url = f"http://127.0.0.1:{config['listen'][0]['port']}/redfish/v1/"
    with service(config_file) as process:
        assert requests.get(url, timeout=PATIENCE).json()["Systems"] == {"@odata.id": "/redfish/v1/Systems"}
        assert requests.get(f"{url}Systems", timeout=PATIENCE).status_code == 401
        found = requests.get(f"{url}Systems/{system['name']}", auth=LOGIN, timeout=PATIENCE).json()
        assert (found["UUID"], found["PowerState"]) == (system["uuid"], "On")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_the_readme_names_all_views_of_sushy_tools_as_used_or_overridden(config_file: Path) -> None:
    done = subprocess.run(python("-c", LIST_VIEWS, str(config_file)), env=ENVIRONMENT, check=True, capture_output=True)
    views: dict[str, bool] = json.loads(done.stdout)
    used = README.partition("Used unchanged:")[2].partition("### The application")[0]
    overridden = README.partition("### Views that are replaced")[2].partition("## What is overridden of others")[0]
    for name, unchanged in views.items():
        assert (f"`{name}`" in used, f"`{name}`" in overridden) == (unchanged, not unchanged), name
