"""One client who takes all that he can get, of images or of connections, in a lab of 20 VMs."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest
from support import image_server, redfish_service
from support.bmc_lab import ADDRESS, MEDIA, PASSWORD, PORT, USER
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm
    from support.image_server import ImageServer
    from support.private_libvirtd import PrivateLibvirtd

INSERT, EJECT = "Actions/VirtualMedia.InsertMedia", "Actions/VirtualMedia.EjectMedia"
INSERTS = 12
STRANGERS, CONNECTIONS = ("127.0.3.1", "127.0.3.2", "127.0.3.3", "127.0.3.4"), 300
"""More than the service lets in at all."""
CLIENT = "127.0.3.9"


@pytest.fixture(scope="module")
def web(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageServer]:
    directory = tmp_path_factory.mktemp("hogs")
    image_server.write_iso(directory / "boot.iso")
    with image_server.start(libvirtd, directory) as server:
        yield server


@pytest.fixture
def vms(lab: BmcLab, twenty: list[Vm]) -> Iterator[list[Vm]]:
    yield twenty
    for vm in twenty:
        vm.destroy()
        assert lab.post(f"{vm.media}/{EJECT}").status_code == 204


def downloads(lab: BmcLab) -> list[str]:
    """Those that are not over."""
    return [path.name for path in lab.libvirtd.path(MEDIA).iterdir() if path.name.startswith(".part-")]


def test_one_that_hogs_media_has_one_download_and_the_others_theirs(
    lab: BmcLab, vms: list[Vm], web: ImageServer
) -> None:
    hog, *others = vms

    def insert(vm: Vm, path: str) -> int:
        return lab.post(f"{vm.media}/{INSERT}", {"Image": web.url(path)}).status_code

    with ThreadPoolExecutor(INSERTS) as clients, web.stalling():
        hogging = [clients.submit(insert, hog, f"/stall?{number}") for number in range(INSERTS)]
        wait_until("all but one have given way", lambda: [each.done() for each in hogging].count(False) == 1)
        assert len(downloads(lab)) == 1
        with ThreadPoolExecutor(len(others)) as owners:
            assert set(owners.map(lambda vm: insert(vm, "/boot.iso"), others)) == {204}
        assert lab.reset(others[0], "On").status_code == 204
        assert all(lab.get(vm.media)["Inserted"] for vm in others)
        assert lab.post(f"{hog.media}/{EJECT}").status_code == 204
        assert {each.result() for each in hogging} == {409}
    wait_until("its space is free", lambda: not downloads(lab))
    assert not lab.get(hog.media)["Inserted"]


def test_strangers_who_hog_connections_keep_nobody_from_any_vm(lab: BmcLab, vms: list[Vm]) -> None:
    with ExitStack() as hogged:
        for stranger in STRANGERS:
            for _number in range(CONNECTIONS):
                connection = socket.create_connection((ADDRESS, PORT), PATIENCE, (stranger, 0))
                hogged.enter_context(connection)
                with suppress(OSError):  # it had to make room already
                    connection.sendall(b"GET /redfish/v1/ HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        with ThreadPoolExecutor(len(vms)) as clients:
            assert set(clients.map(lambda vm: ask_anew("GET", vm.path), vms)) == {200}
            boot = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}}
            assert set(clients.map(lambda vm: ask_anew("PATCH", vm.path, boot), vms)) == {204}
        assert ask_anew("POST", f"{vms[0].path}/Actions/ComputerSystem.Reset", {"ResetType": "On"}) == 204
    assert lab.get(vms[0].path)["PowerState"] == "On"


def ask_anew(method: str, path: str, body: object = None) -> int:
    """With a connection of its own."""
    headers = {"Authorization": redfish_service.basic(USER, PASSWORD), "Content-Type": "application/json"}
    with closing(HTTPConnection(ADDRESS, PORT, timeout=PATIENCE, source_address=(CLIENT, 0))) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        return response.status
