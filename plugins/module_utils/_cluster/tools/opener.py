# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests as the installer makes them: by the proxies of its environment, and not of this module's."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


def opener_for(url: str, environment: Mapping[str, str]) -> urllib.request.OpenerDirector:
    names = {name.lower(): value for name, value in environment.items()}
    proxies = {scheme: names[f"{scheme}_proxy"] for scheme in ("http", "https") if names.get(f"{scheme}_proxy")}
    host = urlsplit(url).netloc.rpartition("@")[2]
    if urllib.request.proxy_bypass_environment(host, {"no": names.get("no_proxy", "")}):  # type: ignore[attr-defined]
        proxies = {}
    return urllib.request.build_opener(urllib.request.ProxyHandler(proxies))


def reason_of(error: Exception) -> str:
    """Why there was no answer."""
    return str(error.reason) if isinstance(error, urllib.error.URLError) else str(error) or type(error).__name__
