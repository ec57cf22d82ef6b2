"""DMTF's own tools against the service: what they fail or warn of is listed here, each with its reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support import bmc_lab, image_server, private_libvirtd, redfish_service, standards
from support.redfish_service import Node, Service

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.bmc_lab import BmcLab
    from support.private_libvirtd import PrivateLibvirtd
    from support.standards import Result

pytestmark = pytest.mark.long
FIRMWARE = ("uefi", "uefi-secure", "bios")
IRONIC = standards.SCHEMAS / "OpenStackIronicProfile.v1_2_0.json"
# What the tools say, by the beginning of "<outcome> <subject>: <message>" as a regular expression, and why it is so.
SERVICE = {
    r"FAIL \S+/VirtualMedia/Cd \[Allow Header\]: .* 'PATCH'": "PATCH came after the schema of 2018",
}
PROTOCOL = {
    "FAIL REQ_POST_CREATE_TO_MEMBERS_PROP ": "a login is a POST to the collection itself",
    "WARN SERV_EVENT_ERROR_ON_BAD_REQUEST ": "events are told by a stream (SSE) and not pushed to subscribers",
    "FAIL SERV_EVENT_POST_RESP ": "events are told by a stream (SSE) and not pushed to subscribers",
}
USE_CASES = {
    "FAIL Addresses Check ": "the hypervisor's addresses, whose mask and gateway it does not know",
    "FAIL Add User Creating new user ": "accounts are the lab's; none can be added at a BMC",
}
INTEROP = {
    r"FAIL \S+/Storage/\w+/Volumes ": "for RAID; the disks are the lab's, and no volume can be made of them at a BMC",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BmcLab]:
    """A VM of each firmware. One of them runs, and one has a disc."""
    web = tmp_path_factory.mktemp("web")
    image_server.write_iso(web / "boot.iso")
    systems = [{"uuid": uuid, "name": f"node-{at}"} for at, uuid in enumerate(bmc_lab.UUIDS[: len(FIRMWARE)])]
    with (
        private_libvirtd.start() as libvirtd,
        bmc_lab.start(libvirtd, systems=systems) as running,
        image_server.start(libvirtd, web) as server,
        running.network(),
    ):
        running.broker.configure(systems, bmc_lab.MEDIA, restart_timeout=1)  # these VMs hear of no graceful restart
        vms = [running.vm(firmware=firmware) for firmware in FIRMWARE]
        assert running.reset(vms[0], "On").status_code == 204
        image = {"Image": server.url("/boot.iso")}
        answer = running.post(f"{vms[1].media}/Actions/VirtualMedia.InsertMedia", image)
        assert answer.status_code == 204, answer.text
        yield running


@pytest.fixture(scope="module")
def service(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One with TLS and two VMs."""
    nodes = [Node("standards-one"), Node("standards-two")]
    redfish_service.define(libvirtd, nodes)
    with Service(libvirtd, tmp_path_factory.mktemp("standards"), nodes) as running:
        yield running


def unexpected(results: list[Result], reasons: Mapping[str, str]) -> str:
    """What a tool says that is not in the table, and what is in the table and not said any more."""
    said = [str(result) for result in results if result.outcome in ("FAIL", "WARN")]
    news = [text for text in said if not any(re.match(reason, text) for reason in reasons)]
    stale = [reason for reason in reasons if not any(re.match(reason, text) for text in said)]
    return "\n".join(news + [f"not said any more: {reason}" for reason in stale])


def passed(results: list[Result]) -> int:
    return sum(result.outcome == "PASS" for result in results)


def plain(lab: BmcLab) -> standards.Service:
    return standards.Service(lab.libvirtd.command, lab.url, (bmc_lab.USER, bmc_lab.PASSWORD))


def test_each_resource_is_as_its_schema_says(lab: BmcLab, tmp_path: Path) -> None:
    schemas = standards.write_schemas(tmp_path)
    results = plain(lab).judged_by("service", tmp_path, "--skipschema", "--schema_directory", str(schemas))
    assert unexpected(results, SERVICE) == ""
    assert passed(results) > 500


def test_each_type_that_is_shown_is_in_the_metadata(lab: BmcLab) -> None:
    known = set(re.findall('Namespace="([^"]+)"', lab.request("GET", "/redfish/v1/$metadata").text))
    for path in walk(lab):
        shown = lab.get(path)["@odata.type"].removeprefix("#").rpartition(".")[0]
        assert shown in known, path


def test_http_is_spoken_as_redfish_has_it(service: Service, tmp_path: Path) -> None:
    ca = service.authority.ca
    judged = standards.Service(service.libvirtd.command, service.url, service.operator, ca)
    results = judged.judged_by("protocol", tmp_path, "--ca-bundle", str(ca), "--report-type", "tsv")
    assert unexpected(results, PROTOCOL) == ""
    assert passed(results) > 150


def test_what_administrators_do_has_its_effect(lab: BmcLab, tmp_path: Path) -> None:
    results = plain(lab).judged_by("use cases", tmp_path)
    assert unexpected(results, USE_CASES) == ""
    assert passed(results) > 20


def test_there_is_all_that_ironic_needs(lab: BmcLab, tmp_path: Path) -> None:
    results = plain(lab).judged_by("interop", tmp_path, str(IRONIC))
    assert unexpected(results, INTEROP) == ""
    assert passed(results) > 50


def walk(lab: BmcLab) -> set[str]:
    """The paths of all resources that links lead to."""
    found, todo = set[str](), ["/redfish/v1/"]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += [
                link.partition("#")[0] for link in re.findall('"@odata.id": ?"([^"]+)"', lab.request("GET", path).text)
            ]
    return found
