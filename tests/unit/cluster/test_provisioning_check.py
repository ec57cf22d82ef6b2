"""What the installer would refuse only after the former cluster is gone."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import provisioning_check
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = f"http://mirror.example.test/rhcos.qcow2.gz?sha256={'0a' * 32}"


def found(platform: dict[str, Any], head: str = "") -> list[str]:
    return list(provisioning_check.problems({"platform": {"baremetal": platform}}, lambda _url: head))


@pytest.mark.parametrize(
    "platform",
    [{}, {"clusterOSImage": IMAGE, "bootstrapOSImage": IMAGE}, {"libvirtURI": "qemu:///system"}],
)
def test_what_can_be_installed_passes(platform: dict[str, Any]) -> None:
    assert found(platform) == []


@pytest.mark.parametrize(
    ("platform", "head", "problem"),
    [
        ({"clusterOSImage": "rhcos.qcow2.gz"}, "", "clusterOSImage: must be an http or https URL (got rhcos.qcow2.gz)"),
        (
            {"bootstrapOSImage": IMAGE.partition("?")[0]},
            "",
            "bootstrapOSImage: must name the image's checksum as ?sha256=, 64 hexadecimal digits (got http://mirror.example.test/rhcos.qcow2.gz)",
        ),
        (
            {"clusterOSImage": IMAGE},
            "it answered 404",
            (
                f"clusterOSImage: {IMAGE} is not available on this host, it answered 404. "
                "Check the URL, the mirror and the proxy."
            ),
        ),
        ({"libvirtURI": "localhost"}, "", "libvirtURI: must be a libvirt URI such as qemu:///system (got localhost)"),
    ],
)
def test_what_cannot_is_named_with_its_key(platform: dict[str, Any], head: str, problem: str) -> None:
    assert found(platform, head) == [f"platform.baremetal.{problem}"]


def test_everything_is_reported_at_once() -> None:
    config = {"platform": {"baremetal": {"clusterOSImage": "a", "bootstrapOSImage": "b", "libvirtURI": "c"}}}
    with pytest.raises(OperatorError) as error:
        provisioning_check.refuse(config, {})
    assert len(str(error.value).splitlines()) == 4


class Mirror(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(200 if "there" in self.path else 404)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


@contextmanager
def mirror() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Mirror) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_images_are_looked_for_where_the_installer_would() -> None:
    with mirror() as address:
        head = provisioning_check.answer_to_head
        assert head(f"http://{address}/there", {}) == ""
        assert head(f"http://{address}/elsewhere", {}) == "it answered 404"
        by_proxy = {"HTTP_PROXY": f"http://{address}"}
        assert head("http://mirror.example.test/there", by_proxy) == ""
        assert head(f"http://{address}/there", {"http_proxy": "http://127.0.0.1:1", "no_proxy": "127.0.0.1"}) == ""
    assert "refused" in head(f"http://{address}/there", {})
