"""`oc`: its version, and tools of a release image. The host's kubectl does the rest, or else this reads the cluster."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from support.stand_in import documents, etcdctl, package, release, scenario
from support.stand_in.api import Api, Unreachable
from support.stand_in.ending import Failed
from support.stand_in.kubernetes import kinds
from support.stand_in.kubernetes.kinds import Kind

ADMINISTRATION = ("cordon", "uncordon", "drain", "certificate", "taint", "top")
"""What `oc adm` has that is kubectl's."""
COMMANDS = ("openshift-install", "openshift-baremetal-install", "openshift-install-fips", "oc")
OK, UNAUTHORIZED, MISSING = 200, 401, 404
BACKUP = "/usr/local/bin/cluster-backup.sh"
PARTS_OF_BACKUP = ("snapshot_2026-01-01_000000.db", "static_kuberesources_2026-01-01_000000.tar.gz")
OPTION_OF_KUBECONFIG = "--kubeconfig"


class OcFailed(Exception):  # noqa: N818 - reads as a sentence
    """In the words of the real one."""


def main(version: str) -> int:
    words = sys.argv[1:]
    if etcdctl.is_asked(words):
        return _etcdctl(words)
    kubectl = scenario.read("").kubectl
    if not _is_own(words) and os.access(kubectl, os.X_OK):
        os.execv(kubectl, [kubectl, *_for_kubectl(words), *_where(words)])  # noqa: S606 - it is to become it
    options = _parser().parse_args()
    try:
        if options.command == "version":
            _version(version, options.output)
        elif options.command == "extract":
            _extract(options)
        elif options.command == "debug":
            _debug(options)
        else:
            _get(options)
    except OcFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    return 0


def _etcdctl(words: list[str]) -> int:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(OPTION_OF_KUBECONFIG, type=Path, default=os.environ.get("KUBECONFIG", ""))
    try:
        sys.stdout.write(etcdctl.run(words, Api(Path(parser.parse_known_args(words)[0].kubeconfig))) + "\n")
    except etcdctl.Unhealthy as unhealthy:
        sys.stdout.write(f"{unhealthy}\n")
        sys.stderr.write("Error: unhealthy cluster\ncommand terminated with exit code 1\n")
        return 1
    except (Failed, Unreachable) as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    return 0


def _is_own(words: list[str]) -> bool:
    """What kubectl does not have, or not as oc has it."""
    commands = [word for word in words if not word.startswith("-")]
    return commands[:1] in (["version"], ["debug"]) or commands[:2] == ["adm", "release"]


def _for_kubectl(words: list[str]) -> list[str]:
    if "adm" in words:
        place = words.index("adm")
        if words[place + 1 : place + 2] and words[place + 1] in ADMINISTRATION:
            return [*words[:place], *words[place + 1 :]]
    return words


def _where(words: list[str]) -> list[str]:
    """Options for a server whose name no name server knows: the stand-in has noted its address."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(OPTION_OF_KUBECONFIG, type=Path)
    told = parser.parse_known_args(words)[0].kubeconfig or Path(os.environ.get("KUBECONFIG", ""))
    if not told.is_file():
        return []
    cluster = documents.load(told.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    host, port = urlsplit(cluster["server"]).hostname, urlsplit(cluster["server"]).port
    try:
        socket.getaddrinfo(host, port)
    except OSError:
        address = cluster.get("extensions", [{"extension": {}}])[0]["extension"].get("address", "")
        shown = f"[{address}]" if ":" in address else address
        return [f"--server=https://{shown}:{port}", f"--tls-server-name={host}"] if address else []
    return []


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


def _debug(options: argparse.Namespace) -> None:
    """On a node, whose file system is at /host. Of what is run there it knows the backup of etcd."""
    name = options.node.partition("/")[2]
    status, _body = Api(options.kubeconfig, 30).get(f"/api/v1/nodes/{name}")
    if status != OK:
        raise OcFailed(f'Error from server (NotFound): nodes "{name}" not found')
    if options.words[:2] != ["chroot", "/host"] or BACKUP not in options.words[-1]:
        raise OcFailed(f"error: {options.words}: command not found")
    sys.stderr.write(f"Starting pod/{name}-debug ...\n")
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for part in PARTS_OF_BACKUP:
            archive.addfile(tarfile.TarInfo(f"./{part}"))


def _get(options: argparse.Namespace) -> None:
    if not options.kubeconfig or not options.kubeconfig.exists():
        raise OcFailed(f"error: stat {options.kubeconfig}: no such file or directory")
    api = Api(options.kubeconfig, float(options.request_timeout.rstrip("s")) or 30)
    wanted = [_kind(name) for name in options.kind.split(",")]
    found = [part for kind in wanted if (part := _read(api, kind, options)) is not None]
    if not found:
        return
    whole: Any = found[0]
    if len(wanted) > 1 or not options.name:
        items = [item for part in found for item in part.get("items", [part])]
        whole = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
    if options.output == "json":
        sys.stdout.write(json.dumps(whole, indent=4) + "\n")
    else:
        for item in whole.get("items", [whole]):
            sys.stdout.write(f"{item['metadata']['name']}\n")


def _kind(name: str) -> Kind:
    for kind in kinds.KINDS:
        if name.lower() in (kind.name, kind.plural, kind.kind.lower(), *kind.short):
            return kind
    raise OcFailed(f'error: the server doesn\'t have a resource type "{name}"')


def _read(api: Api, kind: Kind, options: argparse.Namespace) -> Any:
    namespace = "" if options.all_namespaces or not kind.namespaced else options.namespace or "default"
    path = kind.path + (f"/namespaces/{namespace}" if namespace else "") + f"/{kind.plural}"
    if options.name:
        path += f"/{options.name}"
    elif options.selector:
        path += f"?labelSelector={quote(options.selector)}"
    try:
        status, body = api.get(path)
    except Unreachable as error:
        raise OcFailed(f"Unable to connect to the server: {error}") from error
    if status == UNAUTHORIZED:
        raise OcFailed("error: You must be logged in to the server (Unauthorized)")
    if status == MISSING and options.ignore_not_found:
        return None
    if status != OK:
        raise OcFailed(f"Error from server ({body.get('reason', '')}): {body.get('message', '')}")
    return body


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-o", "--output", default="")
    common.add_argument(OPTION_OF_KUBECONFIG, type=Path, default=argparse.SUPPRESS)
    common.add_argument("--request-timeout", default=argparse.SUPPRESS)
    parser = argparse.ArgumentParser(prog="oc")
    parser.add_argument(OPTION_OF_KUBECONFIG, type=Path, default=None)
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
    get.add_argument("-l", "--selector", default="")
    get.add_argument("--ignore-not-found", action="store_true")
    get.set_defaults(command="get")
    debug = commands.add_parser("debug", parents=[common])
    debug.add_argument("--quiet", action="store_true")
    debug.add_argument("--as-root", action="store_true")
    debug.add_argument("node")
    debug.add_argument("words", nargs="+")
    debug.set_defaults(command="debug")
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
