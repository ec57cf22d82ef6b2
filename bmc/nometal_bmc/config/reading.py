# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of a lab's service: a JSON file that may be replaced while the service runs."""

from __future__ import annotations

import ipaddress
import json
import logging
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Generic, TypeVar

from nometal_bmc.config import changes, passwords
from nometal_bmc.config.sections import ConfigError, Section, whole
from nometal_bmc.config.settings import (
    ALWAYS_OFF,
    POWER_RESTORE,
    RESTART_SECONDS,
    Account,
    BrokerConfig,
    Config,
    Ipmi,
    Listen,
    Media,
    Network,
    System,
    Tls,
)
from nometal_bmc.files import signature

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["CurrentBrokerConfig", "CurrentConfig", "load", "load_broker"]

C = TypeVar("C")
LOG = logging.getLogger(__name__)
LOOK_SECONDS = 0.5
LAST_PORT = 65535
LONGEST_IPMI_NAME, LONGEST_IPMI_PASSWORD = 16, 20  # bytes, says IPMI 2.0


class Current(Generic[C]):
    """The file's content of now, or of when it last was right."""

    look_seconds = LOOK_SECONDS

    def __init__(self, path: Path | str, load: Callable[[Path], C]) -> None:
        self.path = Path(path)
        self._load = load
        self._lock = threading.Lock()
        self._seen = signature(self.path)
        self._read = load(self.path)
        self._config = self._applied(self._read)
        self._next_look = time.monotonic() + self.look_seconds

    @property
    def config(self) -> C:
        if time.monotonic() >= self._next_look:
            self.refresh()
        return self._config

    def refresh(self) -> None:
        """Take the file as it is now; while it is wrong, what was there stays."""
        with self._lock:
            self._next_look = time.monotonic() + self.look_seconds
            found = signature(self.path)
            if found != self._seen:
                self._seen = found
                self._take()

    def _take(self) -> None:
        try:
            self._read = self._load(self.path)
        except ConfigError as error:
            LOG.error("Keeping the configuration of before: %s", error)  # noqa: TRY400 - the text says it all
        else:
            self._config = self._applied(self._read)
            LOG.info("The configuration has been read again")

    def _applied(self, config: C) -> C:
        """The file, with what has been changed since without it."""
        return config


class CurrentConfig(Current[Config]):
    """Of the service."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, load)

    def change_password(self, name: str, password: str) -> None:
        """Of an account that there is: from now on, until the file has another one for it."""
        with self._lock:
            account = self._read.account(name)
            if account is not None:
                changes.write(self._read, account, password)
                self._config = changes.applied(self._read)

    def _applied(self, config: Config) -> Config:
        return changes.applied(config)


class CurrentBrokerConfig(Current[BrokerConfig]):
    """Of the broker: no VM is its any longer once the file says so."""

    look_seconds = 0.0

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, load_broker)


def load(path: Path | str) -> Config:
    return _loaded(path, _config, _check)


def load_broker(path: Path | str) -> BrokerConfig:
    return _loaded(path, _broker_config, _check_systems)


def _loaded(path: Path | str, read: Callable[[Section], C], check: Callable[[C], None]) -> C:
    try:
        text = Path(path).read_text(encoding="utf-8")
        value = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        config = whole(value, "the file", read)
        check(config)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config


def _broker_config(file: Section) -> BrokerConfig:
    media = file.take_or_none("media", str)
    return BrokerConfig(
        lab=file.take("lab", str),
        libvirt_uri=file.take("libvirt_uri", str),
        socket=Path(file.take("socket", str)),
        user=file.take_or_none("user", str),
        systems=file.each("systems", _system),
        media=None if media is None else Path(media),
        restart_timeout=file.take("restart_timeout", int) if "restart_timeout" in file.left else RESTART_SECONDS,
        power_restore=_power_restore(file) if "power_restore" in file.left else ALWAYS_OFF,
    )


def _power_restore(file: Section) -> str:
    policy = file.take("power_restore", str)
    if policy not in POWER_RESTORE:
        raise ConfigError(f"power_restore: {policy} is none of {', '.join(POWER_RESTORE)}")
    return policy


def _system(entry: Section) -> System:
    return System(_uuid(entry), entry.take("name", str))


def _config(file: Section) -> Config:
    tls, media = file.take_or_none("tls", dict), file.take("media", dict)
    return Config(
        lab=file.take("lab", str),
        broker=Path(file.take("broker", str)),
        listen=file.each("listen", lambda entry: Listen(_address(entry), _port(entry))),
        tls=None if tls is None else whole(tls, "tls", _tls),
        systems=file.each("systems", _system),
        accounts=file.each("accounts", _account),
        media=whole(media, "media", _media),
        state=Path(file.take("state", str)),
        ipmi=file.each("ipmi", _ipmi) if "ipmi" in file.left else (),
    )


def _tls(section: Section) -> Tls:
    return Tls(Path(section.take("certificate", str)), Path(section.take("key", str)))


def _media(section: Section) -> Media:
    ca_file = section.take_or_none("ca_file", str)
    return Media(
        directory=Path(section.take("directory", str)),
        max_bytes=section.take("max_bytes", int),
        timeout=section.take("timeout", int),
        ca_file=None if ca_file is None else Path(ca_file),
        networks=_networks(section) if "networks" in section.left else (),
    )


def _networks(section: Section) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text) for text in section.texts("networks"))
    except ValueError as error:
        raise ConfigError(f"{section.where}: networks: {error}") from error


def _account(entry: Section) -> Account:
    name = entry.take("name", str)
    if not name or ":" in name or not name.isprintable():
        raise ConfigError(f"{entry.where}: name {name!r} cannot be used with Basic authentication")
    try:
        password = passwords.parse(entry.take("password", str))
    except passwords.NotAHash as error:
        raise ConfigError(f"{entry.where}: password of {name}: {error}") from error
    systems = None
    if entry.left.get("systems", 0) is None:
        entry.left.pop("systems")
    else:
        systems = frozenset(_canonical(text, entry.where) for text in entry.texts("systems"))
    return Account(name, password, systems)


def _ipmi(entry: Section) -> Ipmi:
    return Ipmi(
        uuid=_uuid(entry),
        name=entry.take("name", str),
        addresses=_addresses(entry),
        port=_port(entry),
        username=_short(entry, "username", LONGEST_IPMI_NAME),
        password=_short(entry, "password", LONGEST_IPMI_PASSWORD),
    )


def _addresses(entry: Section) -> tuple[str, ...]:
    addresses = tuple(_checked_address(text, entry.where) for text in entry.texts("addresses"))
    if not addresses:
        raise ConfigError(f"{entry.where}: addresses: must have an address")
    _unique(f"{entry.where}: address", addresses)
    return addresses


def _address(entry: Section) -> str:
    return _checked_address(entry.take("address", str), entry.where)


def _checked_address(text: str, where: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ConfigError(f"{where}: must be an IP address (got {text})") from error
    if address.is_unspecified or address.is_multicast:
        raise ConfigError(f"{where}: {text} would serve the whole world; name an address of the lab")
    return text


def _port(entry: Section) -> int:
    port = entry.take("port", int)
    if not 0 < port <= LAST_PORT:
        raise ConfigError(f"{entry.where}: port must be 1 to {LAST_PORT} (got {port})")
    return port


def _short(entry: Section, key: str, longest: int) -> str:
    text = entry.take(key, str)
    if not 0 < len(text.encode()) <= longest:
        raise ConfigError(f"{entry.where}: {key} must have 1 to {longest} bytes, as IPMI demands")
    return text


def _uuid(entry: Section) -> str:
    return _canonical(entry.take("uuid", str), entry.where)


def _canonical(text: str, where: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise ConfigError(f"{where}: must be a UUID (got {text})") from error


def _check(config: Config) -> None:
    if not config.listen and not config.ipmi:
        raise ConfigError("listen: must have an address, unless there is ipmi")
    _check_systems(config)
    _unique("accounts: name", (account.name for account in config.accounts))
    _unique("ipmi: UUID", (node.uuid for node in config.ipmi))
    _unique("ipmi: address and port", ((address, node.port) for node in config.ipmi for address in node.addresses))
    for account in config.accounts:
        _known(config, f"accounts: {account.name}", account.systems or ())
    for node in config.ipmi:
        _known(config, f"ipmi: {node.name}", [node.uuid])


def _check_systems(config: Config | BrokerConfig) -> None:
    _unique("systems: UUID", (system.uuid for system in config.systems))
    _unique("systems: name", (system.name for system in config.systems))


def _known(config: Config, who: str, uuids: Iterable[str]) -> None:
    strangers = sorted(set(uuids) - {system.uuid for system in config.systems})
    if strangers:
        raise ConfigError(f"{who} is for {', '.join(strangers)}, not among the systems")


def _unique(what: str, values: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{what} {value} is there twice")
        seen.add(value)
