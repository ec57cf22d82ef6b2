"""The installer's command line, and how each of its commands ends."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, NoReturn

import libvirt
from support.stand_in import cluster, ending, gather, release, scenario
from support.stand_in.creation import Creation
from support.stand_in.ending import Failed, Interrupted
from support.stand_in.log import LEVELS, Log


def main(version: str, program: str) -> int:
    if sys.argv[1:2] == [cluster.COMMAND]:
        return cluster.main(sys.argv[3])
    version = scenario.read("*").release or version
    options = _parser(program).parse_args()
    if options.command == "version":
        sys.stdout.write(
            f"{program} {version}\nbuilt from commit {release.digest(version)[7:47]}\n"
            f"release image {release.image(version)}\nrelease architecture amd64\n"
        )
        return 0
    event_log = Log(options.dir, options.log_level)
    return _run(options, version, event_log)


def _run(options: argparse.Namespace, version: str, event_log: Log) -> int:
    signal.signal(signal.SIGINT, _interrupt)
    event_log.debug(f"OpenShift Installer {version}")
    event_log.debug(f"Built from commit {release.digest(version)[7:47]}")
    started = time.monotonic()
    try:
        code = _command(options, Creation(options, version, event_log), event_log)
        if not code and options.command in (
            "create cluster",
            "wait-for install-complete",
            "wait-for bootstrap-complete",
        ):
            event_log.info(f"Time elapsed: {time.monotonic() - started:.0f}s")
    except Failed as failed:
        event_log.fatal(str(failed))
        return failed.code
    except Interrupted:
        event_log.warning("Received interrupt signal")
        return ending.INTERRUPTED
    except libvirt.libvirtError as error:
        event_log.fatal(f"failed to fetch Cluster: {error}")
        return ending.FATAL
    return code


def _command(options: argparse.Namespace, creation: Creation, event_log: Log) -> int:
    commands: dict[str, Callable[[], int | None]] = {
        "create manifests": creation.manifests,
        "create ignition-configs": creation.ignition_configs,
        "create cluster": creation.cluster,
        "wait-for bootstrap-complete": creation.wait_for_bootstrap,
        "wait-for install-complete": creation.wait_for_install,
        "destroy bootstrap": creation.destroy_bootstrap,
        "destroy cluster": creation.destroy_cluster,
        "gather bootstrap": lambda: gather.bootstrap(creation.assets, event_log, options.bootstrap, options.master),
    }
    return commands[options.command]() or 0


def _interrupt(*_arguments: Any) -> NoReturn:
    raise Interrupted


def _parser(program: str) -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--dir", type=_absolute, default=argparse.SUPPRESS)
    common.add_argument("--log-level", default=argparse.SUPPRESS, choices=(*LEVELS, "warn"))
    parser = argparse.ArgumentParser(prog=program, parents=[common])
    parser.set_defaults(dir=_absolute("."), log_level="info")
    groups = parser.add_subparsers(required=True)
    groups.add_parser("version", parents=[common]).set_defaults(command="version")
    known = {
        "create": ("manifests", "ignition-configs", "cluster"),
        "wait-for": ("bootstrap-complete", "install-complete"),
        "destroy": ("bootstrap", "cluster"),
        "gather": ("bootstrap",),
    }
    for group, names in known.items():
        commands = groups.add_parser(group).add_subparsers(required=True)
        for name in names:
            command = commands.add_parser(name, parents=[common])
            command.add_argument("--skip-password-print", action="store_true")
            command.add_argument("--bootstrap", default="")
            command.add_argument("--master", action="append", default=[])
            command.add_argument("--key", action="append", default=[])
            command.set_defaults(command=f"{group} {name}")
    return parser


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(text))  # noqa: PTH100 - links stay as they are
