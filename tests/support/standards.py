"""DMTF's own tools, each run as its command beside a service, and what they say of it, read from their reports.

service = standards.Service(libvirtd.command, url, login)
results = service.judged_by("interop", directory, "profile.json")
failed = [result for result in results if result.outcome == "FAIL"]
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openpyxl
from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMAS = Path(__file__).parents[2] / "bmc/tests/schemas"
EDM = "{http://docs.oasis-open.org/odata/ns/edm}"
EDMX = "http://docs.oasis-open.org/odata/ns/edmx"
DATA_SERVICES = f"{{{EDMX}}}DataServices"
EMPTY = f'<x:Edmx xmlns:x="{EDMX}" Version="4.0"><x:DataServices/></x:Edmx>'
LONGEST_RUN = 600
COMMANDS = {"service": "rf_service_validator", "protocol": "rf_protocol_validator", "interop": "rf_interop_validator"}
# The Use Case Checkers pause for ten seconds at a time for what is mostly done when a request is answered.
IMPATIENT = """
import time
from redfish_use_case_checkers.console_scripts import main
patient = time.sleep
time.sleep = lambda seconds: patient(seconds / 10)
main()
"""
# The columns of the reports that say what was looked at, for each tool.
SUBJECTS = {
    "service": ("URI", "Property"),
    "protocol": ("Assertion", "Method", "URI"),
    "use cases": ("Test Name", "Operation"),
    "interop": ("URI", "Property"),
}


@dataclass(frozen=True)
class Result:
    """One thing that a tool has looked at."""

    outcome: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.outcome} {self.subject}: {self.message}"


@dataclass(frozen=True)
class Service:
    """What is looked at: `inside` makes a command for its network, `ca` is the file of the authority to trust."""

    inside: Callable[[list[str]], list[str]]
    url: str
    login: tuple[str, str]
    ca: Path | None = None

    def judged_by(self, tool: str, directory: Path, *options: str) -> list[Result]:
        """Run a tool, with its files in a directory of the test's."""
        program = [sys.executable, "-c", IMPATIENT]
        if tool in COMMANDS:
            program = [str(Path(sys.executable).with_name(COMMANDS[tool]))]
        reports = directory / tool
        user, password = self.login
        words = ["--rhost", self.url, "--user", user, "--password", password, "--report-dir", str(reports), *options]
        done = subprocess.run(
            self.inside([*program, *words]),
            cwd=directory,  # a config.ini of somebody's would be read
            env={**os.environ, "REQUESTS_CA_BUNDLE": str(self.ca or "")},  # the machine's would win over options
            check=False,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN,
        )
        results = list(_read(tool, reports)) if reports.exists() else []
        assert results, f"{tool} has ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return results


def _read(tool: str, reports: Path) -> Iterator[Result]:
    for row in _rows(reports):
        if row.get("Result"):
            subject = " ".join(str(row[name]) for name in SUBJECTS[tool])
            yield Result(str(row["Result"]), subject, " ".join(str(row["Message"] or "").split()))


def _rows(reports: Path) -> Iterator[dict[str, Any]]:
    if tables := list(reports.rglob("*.tsv")):
        with tables[0].open(encoding="utf-8", newline="") as table:
            yield from csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        return
    [book] = reports.rglob("*.xlsx")
    header, *rows = openpyxl.load_workbook(book, read_only=True)["Results"].iter_rows(values_only=True)
    for row in rows:
        yield dict(zip((str(name) for name in header), row))


def write_schemas(directory: Path) -> Path:
    """DMTF's schemas, as bmc/tests/schemas/README.md tells of them, in a directory for the Service Validator."""
    with zipfile.ZipFile(SCHEMAS / "DSP8010_2018.1.zip") as bundle:
        bundle.extractall(directory)
    files = directory / "metadata"
    for later in etree.parse(SCHEMAS / "later.xml").iter(f"{EDM}Schema"):
        name, _, _version = later.get("Namespace", "").partition(".")
        file = files / f"{name}_v1.xml"
        tree = etree.parse(file) if file.exists() else etree.ElementTree(etree.fromstring(EMPTY))
        _add(tree.getroot(), later)
        tree.write(file)
    return files


def _add(root: etree._Element, later: etree._Element) -> None:
    """Add a namespace to a schema file, or its types to the same namespace, in place of those with their names."""
    same = [schema for schema in root.iter(f"{EDM}Schema") if schema.get("Namespace") == later.get("Namespace")]
    if not same:
        next(root.iter(DATA_SERVICES)).append(later)
        return
    for added in later:
        for old in same[0]:
            if (old.tag, old.get("Name")) == (added.tag, added.get("Name")):
                same[0].remove(old)
        same[0].append(added)
