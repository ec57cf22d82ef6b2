# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab's BMC service with all that it lives on: what there is of it, what is to be done, and doing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import certificates, config, credentials, layout
from ansible_collections.nometal.ipi.plugins.module_utils._bmc import conflicts as obstacles
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.certificates import Certificate, Pair
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Hashes
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.service import Service, fingerprint, service_of
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, refusals_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import Access
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import KNOWN_OF_BMC
from ansible_collections.nometal.ipi.plugins.module_utils._observe.media_files import is_medium
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool import state as storage_pool
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.port import StoragePoolPort
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.state import StoragePool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Port

CREDENTIALS = "credentials"
CHANGED_PASSWORDS = "changed passwords"
POOL_VERBS = ("define", "build", "start", "autostart", "stop", "delete", "undefine")


@dataclass(frozen=True)
class Emulator:
    """No secret is in it: of passwords only whose they are."""

    pool: StoragePool | None = None
    directories: tuple[str, ...] = ()
    # Files and directories that are there, and who may do what with them.
    access: dict[str, str] = field(default_factory=dict)
    usernames: dict[str, str] = field(default_factory=dict)
    # Whose passwords were changed through their BMCs, and whether the service keeps such passwords.
    changed: tuple[str, ...] = ()
    keeps_passwords: bool = False
    ca: bool = False
    certificate: Certificate | None = None
    config: dict[str, Any] | None = None
    broker: dict[str, Any] | None = None
    service: Service = field(default_factory=Service)


def desired(lab: Lab) -> Emulator:
    return Emulator(
        pool=lab.pool if lab.listen else None,
        directories=tuple(str(path) for path in layout.directories(lab)),
        access={str(path): str(access) for path, access in layout.access(lab).items()},
        usernames=lab.usernames,
        ca=lab.tls,
        certificate=Certificate(lab.certificate_names) if lab.tls else None,
        config=config.declared(lab),
        broker=config.broker(lab),
        service=Service(there=True, installed=True, running=True, serving=fingerprint(lab)),
    )


def plan(current: Emulator | None, wanted: Emulator | None) -> Sequence[Step]:
    if wanted is None:
        return [] if current is None else list(_removal(current))
    return list(_presence(current or Emulator(), wanted))


def _presence(current: Emulator, wanted: Emulator) -> Iterator[Step]:
    if wanted.pool:
        yield from storage_pool.plan(current.pool, wanted.pool)
    yield from (Step("make", path) for path in wanted.directories if path not in current.directories)
    for path, access in current.access.items():
        if wanted.access.get(path, access) != access:
            yield Step("protect", path)
    if current.usernames != wanted.usernames or current.changed:
        through_bmc = f"changed by their BMCs: {', '.join(current.changed)}" if current.changed else ""
        differences = credentials.differences(current.usernames, wanted.usernames)
        yield Step("write", CREDENTIALS, "; ".join(filter(None, (differences, through_bmc))))
    changed = {
        "CA": wanted.ca and not current.ca,
        "certificate": wanted.certificate is not None and current.certificate != wanted.certificate,
        "configuration": (current.config, current.broker) != (wanted.config, wanted.broker),
    }
    yield from (Step("write", thing) for thing, differs in changed.items() if differs)
    if current.keeps_passwords:
        yield Step("remove", CHANGED_PASSWORDS)
    if not current.service.installed:
        yield Step("install", "service")
    if not current.service.running or current.service.serving != wanted.service.serving:
        yield Step("restart" if current.service.running else "start", "service")
    if not wanted.pool:  # which a service of before has used until now
        yield from storage_pool.plan(current.pool, None)


def _removal(current: Emulator) -> Iterator[Step]:
    if current.service.there or current.service.running:
        yield Step("remove", "service")
    yield from storage_pool.plan(current.pool, None)
    # Last: as long as it is there, the next run can tell what is still to be removed.
    if current.directories:
        yield Step("remove", "directory")


class EmulatorPort:
    """The service on this host. Without a connection to libvirt there is no pool, as far as can be seen."""

    def __init__(self, lab: Lab, connection: Any, *, wanted: bool = True) -> None:
        self._lab = lab
        self._wanted = wanted
        self._service = service_of(lab)
        self._connection = connection
        self._pool = StoragePoolPort(connection, lab.pool, is_medium) if connection else None

    @property
    def last_words(self) -> str:
        return self._service.last_words()

    def conflicts(self, wrong: Sequence[str], *, check_mode: bool) -> list[str]:
        """What stands in the way, with what is known to be wrong already."""
        served = [] if wrong else self._served()
        found = [*wrong, *obstacles.of_host(self._lab, served, check_mode=check_mode)]
        if self._connection:
            found += obstacles.of_vms(self._connection, self._lab, check_mode=check_mode)
            found += obstacles.of_media(self._connection, self._lab)
        found += [] if wrong else self._conflicts()
        found = found or ([] if self._lab.listen else list(self.users()))
        if not found:
            # Last: what is missing is no conflict, and in check mode ends the search for conflicts.
            certificates.require_cryptography()
            obstacles.require_what_roles_make(self._lab)
        return found

    def _conflicts(self) -> Iterator[str]:
        """Of the pool of its media, and of the service."""
        if self._pool and self._lab.listen:
            yield from self._pool.conflicts()
        yield from refusals_of(self._service.refuse_conflicts)

    def users(self) -> Iterable[str]:
        """Of the media, before they go: they may be of use to VMs and images of others."""
        return self._pool.users(self._lab.name) if self._pool else ()

    def stays(self) -> list[str]:
        """What is not of the service where it has its things."""
        of_pool = (self._pool.kept or self._pool.stays()) if self._pool else []
        return [*of_pool, *removal.foreign(self._lab.directory, KNOWN_OF_BMC)]

    def _served(self) -> list[Port]:
        """What the running service holds: to look for the holder of each of its ports would take long."""
        if not self._lab.directory.is_dir():
            return []
        now = self._service_now
        is_ours = now.running and now.serving == fingerprint(self._lab)
        return config.ports(config.text_in(self._lab.config)) if is_ours else []

    @cached_property
    def _service_now(self) -> Service:
        return self._service.read()

    def read(self) -> Emulator | None:
        lab = self._lab
        pool = self._pool.read() if self._pool else None
        if not (pool or removal.has_known(lab.directory, KNOWN_OF_BMC) or self._service.is_there()):
            return None
        logins, hashes = self._logins(), Hashes.read(lab.hashes)
        return Emulator(
            pool=pool,
            directories=tuple(str(path) for path in layout.directories(lab) if path.is_dir()),
            access=dict(_access_there(lab)),
            usernames={name: login.username for name, login in logins.items()},
            changed=tuple(self._changed()),
            keeps_passwords=credentials.changes_of(lab.credentials).is_file(),
            ca=lab.tls and certificates.is_good_ca(_read_pair(lab.ca_key, lab.ca)),
            certificate=self._certificate() if lab.tls else None,
            config=config.told(config.text_in(lab.config), logins, hashes),
            broker=config.broker_told(config.text_in(lab.broker_config)),
            service=self._service_now,
        )

    def _certificate(self) -> Certificate | None:
        lab = self._lab
        return certificates.read(_read_pair(lab.server_key, lab.server_certificate), _bytes(lab.ca_key))

    def _logins(self) -> dict[str, Login]:
        try:
            return credentials.read(self._lab.credentials, self._lab.with_ipmi)
        except OperatorError:
            if self._wanted:
                raise
            return {}  # damage is no reason to keep them

    def _changed(self) -> dict[str, Login]:
        try:
            return credentials.changed(self._lab.credentials, credentials.read_file(self._lab.credentials))
        except OperatorError:
            return {}

    def apply(self, step: Step) -> None:
        if step.verb in POOL_VERBS and step.target == self._lab.pool.name and self._pool:
            self._pool.apply(step)
        elif step.verb in ("make", "protect"):
            act = files.own_directory if step.verb == "make" else files.give
            act(Path(step.target), layout.access(self._lab)[Path(step.target)])
            if step.target == self._lab.pool.path:
                layout.give_images_to_broker(self._lab)
        elif step.verb == "write":
            {
                CREDENTIALS: self._write_credentials,
                "CA": self._write_ca,
                "certificate": self._write_certificate,
                "configuration": self._write_config,
            }[step.target]()
        else:
            {
                "install service": self._service.install,
                "start service": self._service.restart,
                "restart service": self._service.restart,
                "remove service": self._service.remove,
                "remove directory": self._remove_directory,
                f"remove {CHANGED_PASSWORDS}": self._remove_changed_passwords,
            }[str(step)]()

    def _write_credentials(self) -> None:
        logins = credentials.completed(credentials.read(self._lab.credentials), self._lab.usernames)
        self._write(self._lab.credentials, credentials.text_of(logins))

    def _write_ca(self) -> None:
        lab = self._lab
        pair = certificates.make_ca(lab.name, former_key=_bytes(lab.ca_key))
        self._write_pair(pair, lab.ca_key, lab.ca, layout.ROOT_ONLY)

    def _write_certificate(self) -> None:
        lab = self._lab
        ca = Pair(lab.ca_key.read_bytes(), lab.ca.read_bytes())
        pair = certificates.make_server(lab.name, lab.certificate_names, ca)
        self._write_pair(pair, lab.server_key, lab.server_certificate, layout.access(lab)[lab.server_key])

    def _write_config(self) -> None:
        lab = self._lab
        logins = credentials.read(lab.credentials)
        hashes = Hashes.read(lab.hashes).completed({name: logins[name] for name in lab.accounts})
        self._write(lab.hashes, hashes.text())
        files.write_whole(lab.broker_config, config.broker_text(lab), layout.FOR_BROKER)
        self._write(lab.config, config.text_of(lab, logins, hashes))

    def _remove_changed_passwords(self) -> None:
        if not self._changed():  # else there is a new one: for the next run
            files.remove(credentials.changes_of(self._lab.credentials))

    def _remove_directory(self) -> None:
        removal.remove_known(self._lab.directory, KNOWN_OF_BMC)
        files.remove_empty(self._lab.home)

    def _write_pair(self, pair: Pair, key: Path, certificate: Path, access: Access) -> None:
        # The certificate last: when it is new, its key is there.
        files.write_whole(key, pair.key, access)
        files.write_whole(certificate, pair.certificate, Access("root", "root", 0o644))

    def _write(self, path: Path, text: str, access: Access | None = None) -> None:
        files.write_whole(path, text, access or layout.access(self._lab)[path])


def _access_there(lab: Lab) -> Iterator[tuple[str, str]]:
    for path in layout.access(lab):
        access = files.access_of(path)
        if access is not None:
            yield str(path), str(access)


def _read_pair(key: Path, certificate: Path) -> Pair | None:
    pair = Pair(_bytes(key), _bytes(certificate))
    return pair if pair.key and pair.certificate else None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
