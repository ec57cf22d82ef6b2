# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installer's Platform Provisioning Check would refuse, which only `create cluster` runs: too late.

By then the former cluster is gone. The role checks the bridges and the BMCs, and the filter install_config_errors
what needs no host.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.opener import opener_for, reason_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

IMAGES = ("bootstrapOSImage", "clusterOSImage")
SHA256 = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
LIBVIRT = re.compile(r"[a-z]+(\+[a-z]+)?://[^\s]*")
TIMEOUT_SECONDS = 30


def refuse(config: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    found = list(problems(config, lambda url: answer_to_head(url, environment)))
    if found:
        raise OperatorError("\n".join(["The installer would refuse to begin. Nothing was removed or begun:", *found]))


def problems(config: Mapping[str, Any], head: Callable[[str], str]) -> Iterator[str]:
    """`head` gives what is wrong with the answer to a HEAD request, or nothing."""
    for key in IMAGES:
        url = at(config, f"{PLATFORM}.{key}")
        if url:
            yield from _image_problems(f"{PLATFORM}.{key}", str(url), head)
    uri = at(config, f"{PLATFORM}.libvirtURI")
    if uri and not LIBVIRT.fullmatch(str(uri)):
        yield f"{PLATFORM}.libvirtURI: must be a libvirt URI such as qemu:///system (got {uri})"


def _image_problems(key: str, url: str, head: Callable[[str], str]) -> Iterator[str]:
    parts = urlsplit(url)
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if parts.scheme not in ("http", "https") or not parts.netloc:
        yield f"{key}: must be an http or https URL (got {shown})"
        return
    sums = parse_qs(parts.query).get("sha256", [])
    if len(sums) != 1 or not SHA256.fullmatch(sums[0]):
        yield f"{key}: must name the image's checksum as ?sha256=, 64 hexadecimal digits (got {shown})"
        return
    wrong = head(url)
    if wrong:
        yield f"{key}: {shown} is not available on this host, {wrong}. Check the URL, the mirror and the proxy."


def answer_to_head(url: str, environment: Mapping[str, str]) -> str:
    """By the proxies that the installer is given."""
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme was checked
    try:
        with opener_for(url, environment).open(request, timeout=TIMEOUT_SECONDS) as answer:
            return "" if answer.status == HTTPStatus.OK else f"it answered {answer.status}"
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}"
    except (OSError, HTTPException) as error:
        return reason_of(error)
