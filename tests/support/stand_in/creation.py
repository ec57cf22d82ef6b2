"""What the commands do, in the installer's order, and what each leaves behind when it ends in the middle."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import libvirt
from support.stand_in import bootstrap, checks, cluster, ending, iso, release, scenario, terraform
from support.stand_in.api import Api
from support.stand_in.assets import Assets
from support.stand_in.ending import Failed, Stuck
from support.stand_in.lab import Lab
from support.stand_in.log import Log
from support.stand_in.scenario import CHECK, CONFIG, DESTROY, EXTRACTION, INFRASTRUCTURE, OPERATORS
from support.stand_in.watch import Watch

FAILED = 'failed to fetch Cluster: failed to generate asset "Cluster": failed to create cluster: '


class Creation:
    def __init__(self, options: argparse.Namespace, version: str, event_log: Log) -> None:
        self._options = options
        self._log = event_log
        self.assets = Assets(options.dir, version, event_log)

    def manifests(self) -> None:
        self._load()
        self.assets.consumed()
        self.assets.write_manifests()
        self._log.info(f"Manifests created in: {self._options.dir}/manifests and {self._options.dir}/openshift")

    def ignition_configs(self) -> None:
        self._load()
        self.assets.consumed()
        self.assets.write_identity()
        self.assets.write_ignition()
        self._log.info(f"Ignition-Configs created in: {self._options.dir} and {self._options.dir}/auth")

    def cluster(self) -> int:
        lab = self._load()
        self.assets.consumed()
        self._log.debug("Fetching Metadata...")
        self.assets.write_identity()
        self._log.debug("Generating Platform Provisioning Check...")
        self._stop_at(lab, CHECK, lambda: Failed(ending.FATAL, f"{checks.CHECKING}{self._message(lab)}"))
        checks.provisioning_check(lab)
        self._infrastructure(lab)
        return self._bootstrap(lab, destroy=True) or self._install(lab)

    def wait_for_bootstrap(self) -> int:
        code = self._bootstrap(self.assets.lab, destroy=False)
        if not code:
            self._log.info("It is now safe to remove the bootstrap resources")
        return code

    def wait_for_install(self) -> int:
        return self._install(self.assets.lab)

    def destroy_bootstrap(self) -> None:
        self._require_metadata("Failed to destroy bootstrap resources")
        with bootstrap.connection() as connection:
            bootstrap.destroy(connection, self.assets.lab)

    def destroy_cluster(self) -> None:
        """Says that all is gone, whatever is left."""
        self._require_metadata("Failed while preparing to destroy cluster")
        lab = self.assets.lab
        if lab.terraform:
            with bootstrap.connection() as connection:
                bootstrap.empty_pool(connection, lab)
                bootstrap.undefine_pool(connection, lab)
        self.assets.forget()
        self._log.info("Uninstallation complete!")

    def _require_metadata(self, what: str) -> None:
        if not (self._options.dir / "metadata.json").exists():
            raise Failed(ending.FATAL, f"{what}: open metadata.json: no such file or directory")

    def _load(self) -> Lab:
        lab = self.assets.load()
        self._stop_at(lab, CONFIG, lambda: Failed(ending.CONFIG, f"{checks.FETCHING}: {self._message(lab)}"))
        return lab

    def _infrastructure(self, lab: Lab) -> None:
        self._log.info("Creating infrastructure resources...")
        ignition, image = self._temporary_ignition(), self._cached_image(lab)
        try:
            with bootstrap.connection() as connection:
                self._make_storage(connection, lab, image, ignition)
                self._stop_at(lab, INFRASTRUCTURE, lambda: Failed(ending.INFRASTRUCTURE, FAILED + self._message(lab)))
                bootstrap.start(connection, lab)
        except libvirt.libvirtError as error:
            raise Failed(ending.INFRASTRUCTURE, f"{FAILED}failed to create the bootstrap VM: {error}") from error
        cluster.start(lab, self.assets.ca, media_by_tls=self.assets.media_by_tls)
        time.sleep(scenario.read(lab.name).speed)
        if lab.terraform:
            terraform.bootstrap_lines(self._log)
            terraform.control_plane(lab, self._log)

    def _make_storage(self, connection: Any, lab: Lab, image: Path, ignition: Path) -> None:
        """A live image is deleted once it is uploaded, whoever else is about to use it."""
        try:
            if not iso.is_whole(image):
                raise Failed(ending.INFRASTRUCTURE, f"{FAILED}failed to upload {image}: unexpected EOF")
            bootstrap.make_storage(connection, lab, image, ignition)
        except FileNotFoundError as error:
            raise Failed(ending.INFRASTRUCTURE, f"{FAILED}failed to open {image}: no such file or directory") from error
        if lab.release >= release.LIVE_ISO:
            image.unlink(missing_ok=True)

    def _temporary_ignition(self) -> Path:
        descriptor, name = tempfile.mkstemp(prefix="openshift-install-bootstrap-", suffix=".ign")
        with os.fdopen(descriptor, "w") as file:
            file.write(self.assets.ignition("bootstrap"))
        return Path(name)

    def _cached_image(self, lab: Lab) -> Path:
        live = lab.release >= release.LIVE_ISO
        if live and not shutil.which("oc"):
            why = (
                'failed to extract the base ISO from the release image: exec: "oc": executable file not found in $PATH'
            )
            raise Failed(ending.INFRASTRUCTURE, FAILED + why)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if live:
            image = cache / "agent/image_cache/coreos-x86_64.iso"
            image.parent.mkdir(parents=True, exist_ok=True)
            iso.extract(image, until=lambda: scenario.read(lab.name).hang != EXTRACTION)
            return image
        image = cache / f"openshift-installer/image_cache/rhcos-{lab.version}.x86_64.qcow2"
        image.parent.mkdir(parents=True, exist_ok=True)
        if not image.exists():
            self._log.info(f"Obtaining RHCOS image file from 'https://rhcos.mirror.openshift.com/{image.name}'")
            image.write_bytes(iso.image())
        return image

    def _bootstrap(self, lab: Lab, *, destroy: bool) -> int:
        watch = self._watch(lab)
        try:
            watch.for_the_api()
            watch.for_bootstrapping()
        except Stuck as stuck:
            self._log.error(f"Attempted to gather ClusterOperator status after installation failure: {stuck.why}")
            self._log.error(f"Bootstrap failed to complete: {stuck.why}")
            self._log.error(ending.API_IS_NOT_UP if stuck.stage == scenario.API else ending.NOT_BOOTSTRAPPED)
            return ending.BOOTSTRAP
        if destroy:
            self._log.info("Destroying the bootstrap resources...")
            self._stop_at(
                lab, DESTROY, lambda: Failed(ending.FATAL, f"failed to destroy bootstrap: {self._message(lab)}")
            )
            with bootstrap.connection() as connection:
                bootstrap.destroy(connection, lab)
        return 0

    def _install(self, lab: Lab) -> int:
        watch = self._watch(lab)
        try:
            watch.for_initialization()
            watch.for_operators()
        except Stuck as stuck:
            return self._not_installed(watch, stuck)
        try:
            watch.for_the_console()
        except Stuck as stuck:
            self._log.warning(f"Cluster does not have a console available: {stuck.why}")
        self._done(lab)
        return 0

    def _not_installed(self, watch: Watch, stuck: Stuck) -> int:
        for name in watch.unavailable():
            self._log.error(f"Cluster operator {name} Available is False with Starting: it has no replica yet")
        self._log.error(ending.TROUBLESHOOTING)
        if stuck.stage == OPERATORS:
            self._log.error(
                f"Error checking cluster operator Progressing status: context deadline exceeded: {stuck.why}"
            )
            return ending.OPERATORS
        self._log.error(f"failed to initialize the cluster: {stuck.why}")
        return ending.INSTALL

    def _done(self, lab: Lab) -> None:
        auth = self._options.dir / "auth"
        self._log.info("Install complete!")
        how = f"    export KUBECONFIG={auth}/kubeconfig"
        self._log.info(f"To access the cluster as the system:admin user when using 'oc', run\n{how}")
        self._log.info(f"Access the OpenShift web-console here: {lab.console}")
        if self._options.skip_password_print:
            self._log.info(f"Credentials omitted, if necessary verify the {auth}/kubeadmin-password file")
        else:
            self._log.info(f'Login to the console with user: "kubeadmin", and password: "{self.assets.password}"')

    def _watch(self, lab: Lab) -> Watch:
        kubeconfig = self._options.dir / "auth/kubeconfig"
        if not kubeconfig.exists():
            raise Failed(ending.FATAL, f"Loading kubeconfig: stat {kubeconfig}: no such file or directory")
        return Watch(lab, Api(kubeconfig), self._log)

    def _stop_at(self, lab: Lab, stage: str, failed: Callable[[], Failed]) -> None:
        """Where nobody else could be what is waited for."""
        while (play := scenario.read(lab.name)).stops_at(stage):
            if play.fail:
                raise failed()
            time.sleep(0.05)

    def _message(self, lab: Lab) -> Any:
        play = scenario.read(lab.name)
        return play.message or f"the stand-in was told to fail at {play.fail}"
