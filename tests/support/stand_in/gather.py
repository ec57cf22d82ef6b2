"""`gather bootstrap`: a log bundle, in which there are secrets."""

from __future__ import annotations

import io
import tarfile
import time

from support.stand_in import bootstrap as vm
from support.stand_in import ending
from support.stand_in.assets import Assets
from support.stand_in.ending import Failed
from support.stand_in.log import Log


def bootstrap(assets: Assets, event_log: Log, address: str, masters: list[str]) -> None:
    lab = assets.lab
    if lab.provisioning_network == "Disabled" and not (address and masters):
        missing = "master" if address else "bootstrap"
        raise Failed(
            ending.FATAL,
            f"failed to get bootstrap and control plane host addresses: must provide {missing} host address",
        )
    event_log.info("Pulling debug logs from the bootstrap machine")
    with vm.connection() as connection:
        if not vm.is_running(connection, lab):
            why = f"dial tcp {address or lab.api_vips[0]}:22: connect: no route to host"
            raise Failed(ending.FATAL, f"failed to connect to the bootstrap machine: {why}")
    name = f"log-bundle-{time.strftime('%Y%m%d%H%M%S', time.gmtime())}"
    path = assets.directory / f"{name}.tar.gz"
    files = {
        "bootstrap/journals/bootkube.log": "bootkube.sh: waits for etcd\n",
        "bootstrap/journals/ironic.log": "ironic: node control-plane-0 moved to state 'deploying'\n",
        "rendered-assets/openshift/install-config.json": assets.ignition("bootstrap"),
        # What has "secret" in its name stays there; any other manifest comes along, whatever is in it.
        **{f"rendered-assets/openshift/{file}": text for file, text in assets.files.items() if "secret" not in file},
    }
    with tarfile.open(path, "w:gz") as bundle:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size = len(text.encode())
            bundle.addfile(entry, io.BytesIO(text.encode()))
    event_log.info(f'Bootstrap gather logs captured here "{path}"')
