"""Virtual media on a real libvirtd: what goes into a drive, what does not, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import libvirt
import pytest
import requests
import sushy
from support import bmc_lab, image_server, redfish_service
from support.bmc_lab import BROKER_USER, DIRECTORY, MEDIA
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm
    from support.image_server import ImageServer
    from support.private_libvirtd import PrivateLibvirtd

OWN_ADDRESS = "192.0.2.80"
MIB, GIB = 1 << 20, 1 << 30
INSERT, EJECT = (f"/Actions/VirtualMedia.{verb}Media" for verb in ("Insert", "Eject"))
READ_AGAIN = "The configuration has been read again"


@dataclass
class Nodes:
    """Five nodes and their drives."""

    lab: BmcLab
    vms: list[Vm]

    def drive(self, node: int = 0) -> dict[str, Any]:
        return self.lab.get(self.vms[node].media)

    def request(self, method: str, path: str, body: object = None, node: int = 0) -> tuple[int, Any]:
        response = self.lab.request(method, f"{self.vms[node].media}{path}", body)
        return response.status_code, response.json() if response.text else None

    def insert(self, body: object, node: int = 0) -> tuple[int, Any]:
        return self.request("POST", INSERT, body, node)

    def eject(self, node: int = 0) -> tuple[int, Any]:
        return self.request("POST", EJECT, None, node)

    @contextmanager
    def unanswered_insert(self, url: str) -> Iterator[None]:
        """By a client that is gone at the end."""
        parts = urlsplit(self.lab.url)
        with closing(HTTPConnection(parts.hostname or "", parts.port)) as connection:
            headers = {
                "Content-Type": "application/json",
                "Authorization": redfish_service.basic(bmc_lab.USER, bmc_lab.PASSWORD),
            }
            connection.request("POST", f"{self.vms[0].media}{INSERT}", json.dumps({"Image": url}), headers)
            yield

    def left(self) -> list[str]:
        return sorted(path.name for path in self.lab.libvirtd.path(MEDIA).iterdir())

    def image(self) -> str:
        """The only one that is there."""
        [name] = self.left()
        return f"{MEDIA}/{name}"

    def live_disc(self, node: int = 0) -> str:
        """What the running guest has in its drive."""
        columns = [line.split() for line in self.virsh("domblklist", self.vms[node].name, "--details").splitlines()]
        [disc] = [line[3] for line in columns if line[1:2] == ["cdrom"]]
        return disc

    def virsh(self, *words: str) -> str:
        return self.lab.libvirtd.run(["virsh", *words]).stdout

    @contextmanager
    def configured(self, **media: object) -> Iterator[None]:
        """Other settings for a while."""
        self._configure(media={**bmc_lab.MEDIA_SETTINGS, **media})
        try:
            yield
        finally:
            self._configure()

    def _configure(self, **changes: Any) -> None:
        before = self.lab.log().count(READ_AGAIN)
        self.lab.configure(**changes)
        wait_until("it has read its configuration again", lambda: self.lab.log().count(READ_AGAIN) > before)


@pytest.fixture(scope="module")
def five(running_lab: BmcLab) -> list[Vm]:
    return [running_lab.vm() for _ in range(5)]


@pytest.fixture
def nodes(lab: BmcLab, five: list[Vm]) -> Iterator[Nodes]:
    """Every test begins with empty drives, and ends with them and with an empty directory."""
    made = Nodes(lab, five)
    yield made
    for node in range(5):
        assert made.eject(node) == (204, None)
    wait_until("nothing is left", lambda: not made.left(), seen=made.left)


@pytest.fixture(scope="module")
def web(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageServer]:
    with image_server.start(libvirtd, tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture(scope="module")
def tls_web(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageServer]:
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "ca.pem", directory / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=image server", "-days", "2"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*request, *names], check=True, capture_output=True)
    with image_server.start(libvirtd, directory, [certificate, key]) as server:
        yield server


def messages(answer: tuple[int, Any]) -> tuple[int, str, list[str]]:
    """The status of a refusal, its text and the properties that it names."""
    status, body = answer
    assert status >= 400, "not refused"
    [info] = body["error"]["@Message.ExtendedInfo"]
    return status, info["Message"], info.get("RelatedProperties", [])


def test_insert_and_eject_as_clients_do(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    before = nodes.vms[0].xml()
    assert nodes.eject() == (204, None)  # Ironic ejects before it inserts
    assert nodes.vms[0].xml() == before

    assert nodes.insert({"Image": web.url("/boot.iso?token=1")}) == (204, None)
    shown = nodes.drive()
    assert (shown["Inserted"], shown["Image"]) == (True, web.url("/boot.iso?token=1"))
    assert (shown["ImageName"], shown["ConnectedVia"], shown["WriteProtected"]) == ("boot.iso", "URI", True)
    assert (shown["TransferMethod"], shown["TransferProtocolType"]) == ("Upload", "HTTP")
    image = nodes.image()
    assert f"<source file='{image}'" in nodes.vms[0].xml()
    assert nodes.lab.libvirtd.path(image).stat().st_mode & 0o777 == 0o644

    image_server.write_iso(web.directory / "other.iso", content=b"other")
    assert nodes.insert({"Image": web.url("/other.iso"), "Inserted": True, "WriteProtected": True}) == (204, None)
    assert nodes.image() != image  # replaced, and the first is gone with its last holder

    assert nodes.request("POST", "/Actions/VirtualMedia.EjectMedia", {}) == (204, None)
    shown = nodes.drive()
    assert (shown["Inserted"], shown["Image"], shown["ConnectedVia"]) == (False, None, "NotConnected")
    assert MEDIA not in nodes.vms[0].xml()


def test_sushy_inserts_and_ejects(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    manager = nodes.lab.sushy().get_system(nodes.vms[0].path).managers[0]
    [drive] = manager.virtual_media.get_members()
    assert sushy.VirtualMediaType.CD in drive.media_types
    assert (drive.inserted, drive.image, drive.transfer_method) == (False, None, None)
    drive.eject_media()
    drive.insert_media(web.url("/boot.iso"), username="nobody", password="nothing")  # noqa: S106 - nobody asks for it
    drive.refresh()
    assert (drive.inserted, drive.image) == (True, web.url("/boot.iso"))
    drive.set_verify_certificate(True)
    drive.set_verify_certificate(False)
    with pytest.raises(sushy.exceptions.BadRequestError, match="404"):
        drive.insert_media(web.url("/no.iso"))
    drive.eject_media()
    drive.refresh()
    assert drive.inserted is False


def test_the_drive_is_changed_by_patch_too(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    assert nodes.request("PATCH", "", {"Image": web.url("/boot.iso"), "Inserted": True}) == (204, None)
    assert nodes.drive()["Inserted"]
    assert nodes.request("PATCH", "", {"Image": None, "Inserted": False}) == (204, None)
    assert not nodes.drive()["Inserted"]


UNKNOWN, MISSING, WRONG_TYPE, NOT_LISTED, CONFLICT = (
    f"ActionParameter{what}" for what in ("Unknown", "Missing", "ValueTypeError", "ValueNotInList", "ValueConflict")
)
MISTAKES: list[tuple[object, str, str]] = [
    ({}, "Image", MISSING),
    ({"Image": None}, "Image", MISSING),
    ({"Image": 7}, "Image", WRONG_TYPE),
    ({"Image": "http://x/y.iso", "Imagine": 1}, "Imagine", UNKNOWN),
    ({"Image": "http://x/y.iso", "Inserted": False}, "Inserted", NOT_LISTED),
    ({"Image": "http://x/y.iso", "WriteProtected": False}, "WriteProtected", NOT_LISTED),
    ({"Image": "http://x/y.iso", "TransferProtocolType": "NFS"}, "TransferProtocolType", NOT_LISTED),
    ({"Image": "http://x/y.iso", "TransferProtocolType": "HTTPS"}, "TransferProtocolType", CONFLICT),
    ({"Image": "https://x/y.iso", "TransferProtocolType": "HTTP"}, "TransferProtocolType", CONFLICT),
    ({"Image": "http://x/y.iso", "TransferMethod": "Carrier pigeon"}, "TransferMethod", NOT_LISTED),
    ({"Image": "http://x/y.iso", "UserName": "me"}, "Password", MISSING),
    ({"Image": "http://x/y.iso", "Password": "me"}, "UserName", MISSING),
]


@pytest.mark.parametrize(("body", "prop", "message"), MISTAKES)
def test_what_cannot_be_done_is_refused_by_name(nodes: Nodes, body: object, prop: str, message: str) -> None:
    before = nodes.vms[0].xml()
    answer = nodes.insert(body)
    status, _, properties = messages(answer)
    assert (status, properties) == (400, [f"#/{prop}"])
    assert answer[1]["error"]["@Message.ExtendedInfo"][0]["MessageId"].rpartition(".")[2] == message
    assert nodes.vms[0].xml() == before


def test_wrong_bodies_of_the_other_requests(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
    wrong: list[tuple[str, str, object, str]] = [
        ("POST", "/Actions/VirtualMedia.EjectMedia", {"x": 1}, UNKNOWN),
        ("POST", "/Actions/VirtualMedia.EjectMedia", [], "MalformedJSON"),
        ("PATCH", "", {"x": 1}, "PropertyUnknown"),
        ("PATCH", "", {"Inserted": True}, "PropertyMissing"),
        ("PATCH", "", {"Image": "http://x/y.iso", "TransferProtocolType": "HTTPS"}, "PropertyValueConflict"),
    ]
    for method, path, body, message in wrong:
        status, answer = nodes.request(method, path, body)
        told = answer["error"]["@Message.ExtendedInfo"][0]["MessageId"]
        assert (status, told.rpartition(".")[2]) == (400, message)
    assert nodes.drive()["Inserted"]


def test_a_missing_directory_is_said_and_is_no_matter_once_it_is_back(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    directory, body = nodes.lab.libvirtd.path(MEDIA), {"Image": web.url("/boot.iso")}
    directory.rename(directory.with_suffix(".away"))
    status, text, _ = messages(nodes.insert(body))
    assert (status, f"{MEDIA} is missing" in text, "playbooks/bmc.yml" in text) == (503, True, True), text
    assert nodes.eject() == (204, None)
    directory.with_suffix(".away").rename(directory)
    os.chown(directory, 0, 0)
    status, text, _ = messages(nodes.insert(body))
    assert (status, f"{MEDIA} cannot be written" in text) == (503, True), text
    os.chown(directory, BROKER_USER, BROKER_USER)
    assert nodes.insert(body) == (204, None)
    assert "Traceback" not in nodes.lab.log()


def test_libvirts_pool_lists_what_is_there(nodes: Nodes, web: ImageServer) -> None:
    nodes.virsh("pool-create-as", "nometal-test-media", "dir", "--target", MEDIA)
    try:
        image_server.write_iso(web.directory / "boot.iso")
        assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
        assert nodes.image() in nodes.virsh("vol-list", "nometal-test-media")
        assert nodes.insert({"Image": web.url("/half")})[0] == 400
        assert nodes.virsh("vol-list", "nometal-test-media").count(MEDIA) == 1
        assert nodes.eject() == (204, None)
        assert MEDIA not in nodes.virsh("vol-list", "nometal-test-media")
    finally:
        nodes.virsh("pool-destroy", "nometal-test-media")


def test_power_on_with_a_disc_that_is_gone_is_a_boot_with_an_empty_drive(nodes: Nodes, web: ImageServer) -> None:
    """As with a server whose remote image cannot be reached."""
    image_server.write_iso(web.directory / "boot.iso")
    vm = nodes.vms[0]
    assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
    nodes.lab.libvirtd.path(nodes.image()).unlink()
    assert nodes.lab.reset(vm, "On").status_code == 204
    try:
        shown = nodes.drive()
        assert (shown["Inserted"], shown["Image"]) == (False, None)
        assert nodes.live_disc() == "-"
        assert f"of {vm.name} is gone" in nodes.lab.broker.log.read_text()
        assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
        assert nodes.live_disc() == nodes.image()
        assert nodes.lab.reset(vm, "ForceRestart").status_code == 204
        assert nodes.live_disc() == nodes.image()
        vm.destroy()
        nodes.lab.libvirtd.path(nodes.image()).unlink()
        vm.domain.create()  # somebody has started it behind our back
        wait_until("the drive is empty", lambda: not nodes.drive()["Inserted"])
    finally:
        vm.destroy()


def test_the_log_tells_what_was_wanted_but_no_secret(nodes: Nodes, web: ImageServer) -> None:
    """The other requests have left their lines in the same log."""
    image_server.write_iso(web.directory / "boot.iso")
    vm = nodes.vms[0]
    inside = web.url("/boot.iso?token=s3cret-token").replace("//", "//reader:s3cret-word@")
    assert nodes.insert({"Image": inside}) == (204, None)
    boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideMode": "UEFI"}
    assert nodes.lab.patch(vm.path, {"Boot": boot}).status_code == 204
    assert nodes.lab.reset(vm, "GracefulShutdown").status_code == 204
    assert nodes.lab.reset(vm, "Explode").status_code == 400
    assert nodes.lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "None"}}).status_code == 204
    log = nodes.lab.log()
    for line in (
        rf"POST \S+\.InsertMedia 204 \d+ ms operator from \S+: Image={web.url('/boot.iso')}$",
        rf"PATCH {vm.path} 204 \d+ ms operator from \S+: Target=Cd Mode=UEFI$",
        r"POST \S+\.Reset 204 \d+ ms operator from \S+: ResetType=GracefulShutdown$",
        r"POST \S+\.Reset 400 \d+ ms operator from \S+$",
    ):
        assert re.search(line, log, re.MULTILINE), (line, log[-1500:])
    assert "s3cret-" not in log


def test_no_other_drives_and_no_certificates(nodes: Nodes) -> None:
    assert nodes.request("GET", "/..")[1]["Members@odata.count"] == 1
    for method, path in (
        ("GET", "/../Floppy"),
        ("POST", "/../Floppy/Actions/VirtualMedia.InsertMedia"),
        ("GET", "/Certificates"),
    ):
        assert nodes.request(method, path, {"Image": "http://127.0.0.1/boot.iso"})[0] == 404
    status, _, properties = messages(nodes.request("PATCH", "", {"Name": "Mine"}))
    assert (status, properties) == (400, ["#/Name"])


def test_fault_09_a_running_guest_gets_and_loses_its_disc(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    image_server.write_iso(web.directory / "other.iso", content=b"other")
    guest = nodes.vms[0].domain
    guest.create()
    try:
        assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
        assert nodes.live_disc() != "-"
        first = nodes.image()
        assert nodes.live_disc() == first
        assert nodes.insert({"Image": web.url("/other.iso")}) == (204, None)
        assert nodes.live_disc() == nodes.image() != first
        # Now only the guest has it, and must not lose it.
        nodes.virsh("change-media", guest.name(), "sdz", "--eject", "--config")
        assert nodes.eject(1) == (204, None)
        assert nodes.live_disc() == nodes.image()
        assert nodes.eject() == (204, None)
        assert nodes.live_disc() == "-"
    finally:
        guest.destroy()


def test_an_image_that_was_qemus_is_still_the_services(nodes: Nodes, web: ImageServer) -> None:
    """libvirt gives the file of a guest's disc to QEMU's user and does not give it back."""
    image_server.write_iso(web.directory / "boot.iso")
    assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
    nodes.vms[0].domain.create()
    nodes.vms[0].domain.destroy()
    image = nodes.lab.libvirtd.path(nodes.image())
    assert image.stat().st_uid != BROKER_USER
    assert nodes.insert({"Image": web.url("/boot.iso")}, 1) == (204, None)
    assert nodes.drive(1)["Inserted"]


def test_fault_10_what_is_in_the_drive_is_read_from_the_vm(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    url, vm = web.url("/boot.iso"), nodes.vms[0]
    empty = vm.xml()
    assert nodes.insert({"Image": url}) == (204, None)
    nodes.lab.stop_service(signal.SIGKILL)
    nodes.lab.start_service()
    assert (nodes.drive()["Inserted"], nodes.drive()["Image"]) == (True, url)
    full = vm.xml()

    vm.domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
    assert nodes.request("GET", "")[0] == 404
    assert nodes.insert({"Image": url})[0] == 404
    for definition, inserted, image in ((empty, False, None), (full, True, url), (empty, False, None)):
        nodes.lab.connection.defineXML(definition)
        assert (nodes.drive()["Inserted"], nodes.drive()["Image"]) == (inserted, image)

    nodes.lab.connection.defineXML(full)
    own = f"{MEDIA}/by-hand.iso"
    image_server.write_iso(nodes.lab.libvirtd.path(own))
    nodes.virsh("change-media", vm.name, "sdz", own, "--update", "--config")
    shown = nodes.drive()
    assert (shown["Inserted"], shown["Image"], shown["ImageName"]) == (True, None, "by-hand.iso")
    assert nodes.eject() == (204, None)
    assert nodes.left() == ["by-hand.iso"]  # whoever put it there removes it
    nodes.lab.libvirtd.path(own).unlink()


def test_fault_11_five_nodes_make_one_download_and_one_copy(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "big.iso", GIB)
    with ThreadPoolExecutor(5) as clients:
        assert set(clients.map(lambda node: nodes.insert({"Image": web.url("/big.iso")}, node)[0], range(5))) == {204}
    assert web.requests("/big.iso") == ["GET"]
    image = nodes.image()
    for node in range(4):
        assert nodes.drive(node)["Inserted"]
        assert nodes.eject(node) == (204, None)
        assert nodes.image() == image
    assert f"<source file='{image}'" in nodes.vms[4].xml()


def test_the_same_url_is_asked_for_news_and_the_same_content_kept_once(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "news.iso")
    os.utime(web.directory / "news.iso", (1, 1))
    image_server.write_iso(web.directory / "copy.iso")
    for node, name in enumerate(("news.iso", "news.iso", "copy.iso")):
        assert nodes.insert({"Image": web.url(f"/{name}")}, node) == (204, None)
    assert web.requests("/news.iso") == ["GET", "HEAD"]
    first = nodes.image()

    image_server.write_iso(web.directory / "news.iso", content=b"news")
    os.utime(web.directory / "news.iso", (0, 0))  # older even, as if a backup was put back
    assert nodes.insert({"Image": web.url("/news.iso")}, 3) == (204, None)
    assert web.requests("/news.iso") == ["GET", "HEAD", "HEAD", "GET"]
    assert len(nodes.left()) == 2
    assert first not in nodes.vms[3].xml()
    assert first in nodes.vms[0].xml()


def test_fault_15_nothing_but_an_image_is_inserted(nodes: Nodes, web: ImageServer) -> None:
    contents = {
        "text.iso": b"hello\n",
        "disk.qcow2": b"QFI\xfb" + bytes(99999),
        "empty.iso": b"",
        "zero.iso": bytes(MIB),
    }
    for name, content in contents.items():
        (web.directory / name).write_bytes(content)
    refused = {
        web.url("/text.iso"): "a text file",
        web.url("/disk.qcow2"): "a qcow2 image",
        web.url("/empty.iso"): "empty",
        web.url("/zero.iso"): "nothing known",
        web.url("/index"): "a directory listing",
        web.url("/no.iso"): "404",
        "http://127.0.0.1:1/boot.iso": "no server of images answers there",
        "http://no.such.host.invalid/boot.iso": "no such host",
        "http://" + "x" * 70 + ".invalid/boot.iso": "",
    }
    refuse_all(nodes, refused)


def test_attacks_by_url(nodes: Nodes, web: ImageServer) -> None:
    (nodes.lab.libvirtd.path(MEDIA).parent / "secret.iso").write_bytes(image_server.iso())
    refused = {
        "file:///etc/passwd": "not file",
        f"file://{MEDIA}/../secret.iso": "not file",
        "ftp://127.0.0.1/boot.iso": "not ftp",
        "gopher://127.0.0.1/": "not gopher",
        "/etc/passwd": "without a scheme",
        "../../secret.iso": "without a scheme",
        "http:///boot.iso": "names no host",
        "http://[::1/boot.iso": "malformed",
        "http://127.0.0.1:99999/boot.iso": "malformed",
        "http://127.0.0.1/a b\r\nX-Evil: 1": "control character",
        web.url("/redirect?file:///etc/passwd"): "not file",
        web.url("/redirect?ftp://127.0.0.1/boot.iso"): "not ftp",
        web.url("/loop"): "redirects more than 5 times",
        web.url("/long"): "more than the",
        web.url("/short"): "cut short",
        web.url("/half"): "announced",
    }
    refuse_all(nodes, refused)


@pytest.fixture
def own_address(lab: BmcLab) -> Iterator[str]:
    """Another address of the host than loopback."""
    lab.libvirtd.run(["ip", "address", "add", f"{OWN_ADDRESS}/32", "dev", "lo"])
    yield OWN_ADDRESS
    lab.libvirtd.run(["ip", "address", "delete", f"{OWN_ADDRESS}/32", "dev", "lo"])


def test_nothing_is_fetched_from_the_host_itself(nodes: Nodes, web: ImageServer, own_address: str) -> None:
    image_server.write_iso(web.directory / "inside.iso")
    hosts = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost", "0.0.0.0", "127.255.255.254", own_address]  # noqa: S104
    hosts += ["[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::]", "169.254.169.254", "[fe80::1%25lo]", "224.0.0.1"]
    inside = [f"http://{host}:{web.port}/inside.iso" for host in hosts] + [f"https://127.0.0.1:{web.port}/inside.iso"]
    with nodes.configured(networks=[]):
        told = {messages(nodes.insert({"Image": url}))[1].replace(url, "<url>") for url in inside}
        [text] = told - {"The image cannot be inserted: <url>: there is no such host."}
        assert "media.networks" in text
        closed = f"http://{own_address}:1/inside.iso"
        assert messages(nodes.insert({"Image": closed}))[1].replace(closed, "<url>") == text
    with nodes.configured(networks=[f"{own_address}/32"]):
        outside = web.url("").replace("127.0.0.1", own_address)
        for url in inside:
            if own_address not in url:
                assert nodes.insert({"Image": f"{outside}/redirect?{url}"})[0] == 400
        assert web.requests("/inside.iso") == []
        assert nodes.insert({"Image": f"{outside}/redirect?{outside}/inside.iso"}) == (204, None)


def refuse_all(nodes: Nodes, refused: dict[str, str]) -> None:
    before = nodes.vms[0].xml()
    for url, why in refused.items():
        status, text, properties = messages(nodes.insert({"Image": url}))
        assert (status, properties) == (400, ["#/Image"]), text
        assert why in text, url
        assert "passwd" not in nodes.lab.log()
    assert nodes.vms[0].xml() == before
    assert nodes.left() == []


def test_neither_endless_nor_slow_servers_hold_it_for_ever(nodes: Nodes, web: ImageServer) -> None:
    with nodes.configured(max_bytes=8 * MIB, timeout=1), web.stalling():
        for path, why in {
            "/endless": "more than the",
            "/trickle": "within 1 seconds",
            "/stall": "within 1 seconds",
        }.items():
            status, text, _ = messages(nodes.insert({"Image": web.url(path)}))
            assert (status, why in text) == (400, True), text
        assert nodes.left() == []


def test_redirects_are_followed_but_logins_stay_with_their_server(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    name, password = image_server.LOGIN
    assert nodes.insert({"Image": web.url("/redirect?/redirect?/boot.iso")}) == (204, None)
    login = {"UserName": name, "Password": password}
    assert nodes.insert({"Image": web.url("/login/boot.iso"), **login}) == (204, None)
    assert nodes.drive()["Password"] is None
    inside = web.url("/login/boot.iso").replace("//", f"//{name}:{password}@")
    assert nodes.insert({"Image": inside}) == (204, None)
    assert nodes.drive()["Image"] == web.url("/login/boot.iso")
    for node in range(5):
        assert password not in nodes.vms[node].xml()

    for body in ({}, {**login, "Password": "wrong"}):
        status, text, _ = messages(nodes.insert({"Image": web.url("/login/boot.iso"), **body}))
        assert (status, "another login" in text) == (400, True), text
    elsewhere = web.url("/login/boot.iso").replace("127.0.0.1", "localhost")
    assert nodes.insert({"Image": web.url(f"/redirect?{elsewhere}"), **login})[0] == 400
    assert password not in nodes.lab.log()


def test_certificates_are_checked_when_asked_to(nodes: Nodes, tls_web: ImageServer) -> None:
    image_server.write_iso(tls_web.directory / "boot.iso")
    body = {"Image": tls_web.url("/boot.iso")}
    assert not nodes.drive()["VerifyCertificate"]
    assert nodes.insert(body) == (204, None)
    assert nodes.request("PATCH", "", {"VerifyCertificate": True}) == (204, None)
    assert nodes.drive()["VerifyCertificate"]
    status, text, _ = messages(nodes.insert(body))
    assert (status, "not trusted" in text) == (400, True), text
    shutil.copy(tls_web.directory / "ca.pem", nodes.lab.directory)
    with nodes.configured(ca_file=f"{DIRECTORY}/ca.pem"):
        assert nodes.drive(1)["VerifyCertificate"]
        for node in (0, 1):
            assert nodes.insert(body, node) == (204, None)
        status, text, _ = messages(nodes.insert({"Image": tls_web.url("/redirect?http://127.0.0.1/boot.iso")}))
        assert (status, "redirects to http" in text) == (400, True), text
    assert nodes.request("PATCH", "", {"VerifyCertificate": False}) == (204, None)


def test_a_full_disk_is_noticed_first(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso", 2 * MIB)
    small = f"{MEDIA}-small"
    size = 257  # MiB, of which 256 have to stay free
    nodes.lab.libvirtd.run(["mkdir", "--parents", small])
    nodes.lab.libvirtd.run(["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=0777", "tmpfs", small])
    try:
        with nodes.configured(directory=small, max_bytes=GIB):
            for path in ("/boot.iso", "/endless"):
                status, text, _ = messages(nodes.insert({"Image": web.url(path)}))
                assert (status, "too little room" in text) == (507, True), text
            assert list(nodes.lab.libvirtd.path(small).iterdir()) == []
            assert not nodes.drive()["Inserted"]
    finally:
        nodes.lab.libvirtd.run(["umount", small])


def test_killed_in_the_middle_of_an_insert(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    with ThreadPoolExecutor(1) as client, web.stalling() as let_go:
        insert = client.submit(nodes.insert, {"Image": web.url("/stall")})
        wait_until("the download has begun", nodes.left)
        nodes.lab.stop_service(signal.SIGKILL)
        with pytest.raises(requests.ConnectionError):
            insert.result()
        wait_until("the broker has removed what came of it", lambda: nodes.left() == [])
        nodes.lab.start_service()
        let_go()
    assert nodes.left() == []
    assert not nodes.drive()["Inserted"]
    assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)


def test_a_restart_waits_for_no_download(nodes: Nodes, web: ImageServer) -> None:
    with ThreadPoolExecutor(1) as client, web.stalling():
        insert = client.submit(nodes.lab.request, "POST", f"{nodes.vms[0].media}{INSERT}", {"Image": web.url("/stall")})
        wait_until("the download has begun", nodes.left)
        nodes.lab.stop_service(signal.SIGTERM)
        nodes.lab.start_service()
        answer = insert.result()
        status, text, _ = messages((answer.status_code, answer.json()))
        assert (status, "service stops" in text, answer.headers["Retry-After"]) == (503, True, "3"), text
        assert answer.headers["Content-Type"] == "application/json"
        assert nodes.left() == []
        assert not nodes.drive()["Inserted"]
    assert "Traceback" not in nodes.lab.log()


def test_a_slow_download_holds_up_nobody_and_ends_at_a_later_wish(nodes: Nodes, web: ImageServer) -> None:
    image_server.write_iso(web.directory / "boot.iso")
    with ThreadPoolExecutor(2) as clients, web.stalling() as let_go:
        overtaken = clients.submit(nodes.insert, {"Image": web.url("/stall")})
        wait_until("the download has begun", nodes.left)
        patient = clients.submit(nodes.insert, {"Image": web.url("/stall")}, 1)
        assert nodes.insert({"Image": web.url("/boot.iso")}, 2) == (204, None)
        assert nodes.eject() == (204, None)
        status, text, _ = messages(overtaken.result())
        assert (status, "came after" in text) == (409, True), text
        assert not patient.done()
        let_go()
        assert patient.result() == (204, None)
    assert web.requests("/stall")[-1:] == ["GET"]
    assert [nodes.drive(node)["Inserted"] for node in range(3)] == [False, True, True]


@pytest.mark.parametrize("how", ["ejected", "replaced", "abandoned"])
def test_a_download_for_nobody_ends_at_once_and_gives_its_space_back(nodes: Nodes, web: ImageServer, how: str) -> None:
    """Its server would send the rest only afterwards."""
    image_server.write_iso(web.directory / "boot.iso")
    url = web.url(f"/stall?{how}")
    with ThreadPoolExecutor(1) as client, web.stalling():
        if how == "abandoned":
            with nodes.unanswered_insert(url):
                wait_until("the download has begun", nodes.left)
        else:
            insert = client.submit(nodes.insert, {"Image": url})
            wait_until("the download has begun", nodes.left)
            if how == "ejected":
                assert nodes.eject() == (204, None)
            else:
                assert nodes.insert({"Image": web.url("/boot.iso")}) == (204, None)
            assert messages(insert.result())[0] == 409
        wait_until("its space is free", lambda: not [name for name in nodes.left() if name.startswith(".part-")])
        assert nodes.drive()["Inserted"] == (how == "replaced")
        again = client.submit(nodes.insert, {"Image": url})
        wait_until("another download has begun", lambda: any(name.startswith(".part-") for name in nodes.left()))
        (web.directory / "go").touch()
        assert again.result() == (204, None)


def test_who_shares_a_download_does_not_lose_it_with_those_who_leave(nodes: Nodes, web: ImageServer) -> None:
    url = web.url("/stall?shared")
    with ThreadPoolExecutor(1) as client, web.stalling() as let_go:
        with nodes.unanswered_insert(url):
            wait_until("the download has begun", nodes.left)
            patient = client.submit(nodes.insert, {"Image": url}, 1)
            wait_until("both wait", lambda: nodes.lab.request("GET", nodes.vms[1].media).ok and not patient.done())
        let_go()
        assert patient.result() == (204, None)
    wait_until("nobody else has it", lambda: not nodes.drive()["Inserted"])


@pytest.fixture
def many(lab: BmcLab) -> Iterator[Nodes]:
    """One more than may insert at once."""
    made = Nodes(lab, [lab.vm(firmware="bios") for _ in range(49)])
    yield made
    for node in range(len(made.vms)):
        assert made.eject(node) == (204, None)


def test_too_many_inserts_at_once_are_asked_to_come_again(many: Nodes, web: ImageServer) -> None:
    count = len(many.vms)
    with ThreadPoolExecutor(count) as clients, web.stalling() as let_go:
        inserts = [clients.submit(many.insert, {"Image": web.url("/stall")}, node) for node in range(count)]
        refused = next(as_completed(inserts)).result()
        assert messages(refused)[0] == 503
        let_go()
        done = [insert.result()[0] for insert in inserts]
    assert (done.count(503), done.count(204)) == (1, count - 1)
