"""What the installer refuses: an install-config, and later a place to install that is not as it says."""

from __future__ import annotations

from typing import Any

import libvirt
from support import installer_rules
from support.stand_in import documents, ending
from support.stand_in.ending import Failed
from support.stand_in.lab import Lab
from support.stand_in.log import Log
from support.stand_in.release import Release

SOCKET = "/var/run/libvirt/libvirt-sock"
LOADING = 'failed to load asset "Install Config": failed to create install config'
FETCHING = "failed to fetch Master Machines: " + LOADING
CHECKING = (
    'failed to fetch Cluster: failed to fetch dependency of "Cluster": failed to generate asset "Platform Provisioning'
    ' Check": '
)


def read_config(text: str, release: Release, event_log: Log) -> dict[str, Any]:
    """Fails with all that is wrong with it, on one line."""
    try:
        config = documents.load(text)
    except documents.Unreadable as error:
        raise _refused(f'failed to unmarshal install-config.yaml: error converting YAML to JSON: "{error}"') from error
    if not isinstance(config, dict):
        raise _refused("failed to unmarshal install-config.yaml: it is no mapping")
    unknown = installer_rules.unknown_keys(config, release)
    if unknown and release >= installer_rules.STRICT:
        raise _refused("failed to unmarshal install-config.yaml: error unmarshaling JSON: " + ", ".join(unknown))
    for key in unknown:
        event_log.warning(f"failed to parse first occurrence of unknown field: {key}")
    wrong = installer_rules.refused(config, release)
    if wrong:
        shown = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        raise _refused(f'invalid "install-config.yaml" file: {shown}')
    return config


def _refused(why: str) -> Failed:
    return Failed(ending.CONFIG, f"{FETCHING}: {why}")


def provisioning_check(lab: Lab) -> None:
    """Of `create cluster` alone."""
    wrong = [*installer_rules.refused_at_start(lab.config, lab.release), *_bridges(lab)]
    if wrong:
        shown = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        raise Failed(ending.FATAL, CHECKING + shown)


def _bridges(lab: Lab) -> list[str]:
    known, interfaces = _known_to_libvirt()
    keys = ("externalBridge", "provisioningBridge")
    return [
        f'platform.baremetal.{key}: Invalid value: "{bridge}": could not find interface "{bridge}", '
        f"valid interfaces are {', '.join(interfaces)}"
        for key, bridge in zip(keys, lab.bridges)
        if bridge not in {*known, *interfaces}
    ]


def _known_to_libvirt() -> tuple[list[str], list[str]]:
    """Active networks that are called like their bridge, and active interfaces; both lists are always asked for."""
    try:
        connection = libvirt.open(f"qemu:///system?socket={SOCKET}")
    except libvirt.libvirtError as error:
        raise Failed(ending.FATAL, f"{CHECKING}could not connect to libvirt: dial unix {SOCKET}: {error}") from error
    try:
        networks = connection.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_ACTIVE)
        interfaces = connection.listAllInterfaces(libvirt.VIR_CONNECT_LIST_INTERFACES_ACTIVE)
        return [name for name in map(_name_of_both, networks) if name], [item.name() for item in interfaces]
    except libvirt.libvirtError as error:
        raise Failed(ending.FATAL, f"{CHECKING}could not list interfaces: {error}") from error
    finally:
        connection.close()


def _name_of_both(network: Any) -> str:
    try:
        return str(network.name()) if network.name() == network.bridgeName() else ""
    except libvirt.libvirtError:  # it has no bridge
        return ""
