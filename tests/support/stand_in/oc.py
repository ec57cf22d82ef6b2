"""`oc`, as far as it is used: its version, tools out of a release image, and reading the cluster."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from support.stand_in import package, release
from support.stand_in.api import Api, Unreachable
from support.stand_in.resources import PATHS

ALIASES = {
    **{name: name for name in PATHS},
    **{name[:-1]: name for name in PATHS},
    "co": "clusteroperators",
    "bmh": "baremetalhosts",
    "no": "nodes",
    "cm": "configmaps",
}
COMMANDS = ("openshift-install", "openshift-baremetal-install", "openshift-install-fips", "oc")
OK, UNAUTHORIZED = 200, 401


class OcFailed(Exception):  # noqa: N818 - reads as a sentence
    """In the words of the real one."""


def main(version: str) -> int:
    options = _parser().parse_args()
    try:
        if options.command == "version":
            _version(version, options.output)
        elif options.command == "extract":
            _extract(options)
        else:
            _get(options)
    except OcFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    return 0


def _version(version: str, output: str) -> None:
    if output == "json":
        sys.stdout.write(json.dumps({"releaseClientVersion": version, "clientVersion": {"gitVersion": version}}) + "\n")
    else:
        sys.stdout.write(f"Client Version: {version}\nKustomize Version: v5.6.0\n")


def _extract(options: argparse.Namespace) -> None:
    image = options.image
    version = release.version_in(image)
    if not version:
        raise OcFailed(f"error: unable to read image {image}: manifest unknown")
    if not (image.startswith(release.OKD) or _may_pull(options.registry_config)):
        why = "unauthorized: access to the requested resource is not authorized"
        raise OcFailed(f"error: unable to read image {image}: {why}")
    if options.wanted not in COMMANDS:
        raise OcFailed(f"error: command {options.wanted} not found")
    options.to.mkdir(parents=True, exist_ok=True)
    package.make(options.to / options.wanted, version)


def _may_pull(file: Path | None) -> bool:
    try:
        return bool(file and json.loads(file.read_text())["auths"])
    except OSError as error:
        raise OcFailed(f"error: unable to load --registry-config: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise OcFailed("error: unable to load --registry-config: unexpected end of JSON input") from error


def _get(options: argparse.Namespace) -> None:
    if not options.kubeconfig or not options.kubeconfig.exists():
        raise OcFailed(f"error: stat {options.kubeconfig}: no such file or directory")
    seconds = float(options.request_timeout.rstrip("s")) or 30
    api, found = Api(options.kubeconfig, seconds), []
    for kind in options.kind.split(","):
        resource = ALIASES.get(kind.partition(".")[0].lower())
        if not resource:
            raise OcFailed(f'error: the server doesn\'t have a resource type "{kind}"')
        found.append(_read(api, resource, options.name))
    whole: Any = found[0]
    if len(found) > 1:
        whole = {**found[0], "items": [item for part in found for item in part.get("items", [part])]}
    if options.output == "json":
        sys.stdout.write(json.dumps(whole, indent=4) + "\n")
    else:
        for item in whole.get("items", [whole]):
            sys.stdout.write(f"{item['metadata']['name']}\n")


def _read(api: Api, resource: str, name: str) -> Any:
    try:
        status, body = api.get(PATHS[resource] + (f"/{name}" if name else ""))
    except Unreachable as error:
        raise OcFailed(f"Unable to connect to the server: {error}") from error
    if status == UNAUTHORIZED:
        raise OcFailed("error: You must be logged in to the server (Unauthorized)")
    if status != OK:
        raise OcFailed(f'Error from server (NotFound): {resource} "{name}" not found')
    return body


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-o", "--output", default="")
    common.add_argument("--kubeconfig", type=Path, default=argparse.SUPPRESS)
    common.add_argument("--request-timeout", default=argparse.SUPPRESS)
    parser = argparse.ArgumentParser(prog="oc")
    parser.add_argument("--kubeconfig", type=Path, default=None)
    parser.add_argument("--request-timeout", default="0")
    commands = parser.add_subparsers(required=True)
    version = commands.add_parser("version", parents=[common])
    version.add_argument("--client", action="store_true")
    version.set_defaults(command="version")
    get = commands.add_parser("get", parents=[common])
    get.add_argument("kind")
    get.add_argument("name", nargs="?", default="")
    get.add_argument("-n", "--namespace", default="")
    get.add_argument("-A", "--all-namespaces", action="store_true")
    get.set_defaults(command="get")
    extract = (
        commands.add_parser("adm").add_subparsers(required=True).add_parser("release").add_subparsers(required=True)
    )
    tool = extract.add_parser("extract")
    tool.add_argument("--command", dest="wanted", required=True)
    tool.add_argument("--to", type=Path, default=Path())
    tool.add_argument("-a", "--registry-config", type=Path)
    tool.add_argument("image")
    tool.set_defaults(command="extract")
    return parser
