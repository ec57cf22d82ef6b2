# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for the installer's bootstrap VM: looks around, serves the nodes' image, and drives every node's BMC."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from . import dhcp4, links, lookups, machine, network, pings, pxe
from .channel import Channel
from .driving import Driver
from .reports import TOGETHER_SECONDS, Image, Reports, Server

if TYPE_CHECKING:
    from collections.abc import Mapping

OFFER_SECONDS = 1.5
"""For offers of further DHCP servers, before one is taken up."""
SERVER_SECONDS = 5.0
"""For those who look for three seconds first whether the address is in use."""
PROBE_SECONDS = 0.6
MEDIUM = "/dev/sr0"
AT_ONCE = 16
SILENT = "no answer, nor to small ones"


def play(device: str) -> None:
    channel = Channel(device)
    task = channel.ask()
    machine.say("bootstrap VM knows what to do")
    try:
        Bootstrap(task, channel).play()
    except Exception as error:  # that the host need not wait for more
        channel.tell("broke", "bootstrap", said=repr(error))
        raise
    machine.say("bootstrap VM is done")


class Bootstrap:
    def __init__(self, task: Mapping[str, Any], channel: Channel) -> None:
        self._task = task
        self._channel = channel
        self._link = _link_of(task["mac"])
        self._reports = Reports([node["uuid"] for node in task["nodes"]], task.get("together", TOGETHER_SECONDS))

    def play(self) -> None:
        threading.Thread(target=self._channel.listen, args=[self._hear_host], daemon=True).start()
        self._state("joins the network")
        if self._join():
            with ThreadPoolExecutor(1) as ear:
                heard = ear.submit(self._listen_for_servers)
                self._state("looks around")
                self._go_on(*self._look_around())
                heard.result()
        else:
            self._stop("the bootstrap VM has no address")
        self._state("is done")
        self._channel.tell("finished", "bootstrap")

    def _hear_host(self, said: Mapping[str, Any]) -> None:
        """The host sees whether a silent node still does something."""
        if "lost" in said:
            self._reports.lose(said["lost"], said["why"])

    def _go_on(self, cut: list[str], held: list[str]) -> None:
        """As far as it can come to something. What others hold is not taken from them."""
        if cut:
            self._stop("full-size frames do not pass")
        elif held:
            self._stop(f"already in use: {', '.join(held)}")
            self._drive(only_ask=True)
        else:
            self._state("takes the virtual addresses")
            self._serve()
            self._take_addresses()
            self._state("serves the nodes")
            self._drive()

    def _stop(self, reason: str) -> None:
        self._saw("hindrance", reason)

    def _state(self, state: str) -> None:
        self._channel.tell("state", "bootstrap", state=state)

    def _saw(self, topic: str, value: Any) -> None:
        self._channel.tell("seen", "bootstrap", topic=topic, value=value)

    def _join(self) -> bool:
        static = self._task["static"]
        if static:
            network.join_with(self._link, static["addresses"])
            self._saw("network", [{"link": self._link, "mac": self._task["mac"], "mtu": links.mtu(self._link)}])
        else:
            card = network.join_one(self._link, self._task["mac"], self._task["families"], OFFER_SECONDS)
            self._saw("network", [card])
        addresses = links.addresses(self._link)
        self._saw("addresses", addresses)
        self._saw("routes", links.routes())
        return bool(addresses)

    def _listen_for_servers(self) -> None:
        if "ipv4" in self._task["families"] and not self._task["static"]:
            servers = dhcp4.servers(self._link, self._task["mac"], SERVER_SECONDS)
            for server in servers:
                pings.ping(server, PROBE_SECONDS)  # so that its MAC address is known
            self._saw("servers", servers)
        self._saw("neighbours", links.neighbours(self._link))

    def _look_around(self) -> tuple[list[str], list[str]]:
        """All questions at once: one that is not answered takes seconds.

        Returns where full-size frames are lost that small ones reach, and which virtual addresses are taken.
        """
        task = self._task
        names = [(name, server) for name in task["names"] for server in task["dns"]]
        reverse = [(address, server) for address in task["reverse"] for server in task["dns"]]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda pair: lookups.addresses_of(*pair), names)
            backwards = pool.map(lambda pair: lookups.names_of(*pair), reverse)
            clocks = pool.map(lookups.clock_of, task["ntp"])
            frames = pool.map(_lost_frames, task["frames"])
            outside = pool.map(_reaches, task["outside"])
            holders = pool.map(lambda address: pings.ping(address, PROBE_SECONDS).trouble, task["vips"])
            held = [address for address, trouble in zip(task["vips"], holders) if not trouble]
            lost = list(frames)
            self._saw("names", [[name, server, *answer] for (name, server), answer in zip(names, found)])
            self._saw("reverse", [[address, server, *answer] for (address, server), answer in zip(reverse, backwards)])
            self._saw("clocks", [[server, clock] for server, clock in zip(task["ntp"], clocks)])
            self._saw("frames", [[way["address"], way["bytes"], trouble] for way, trouble in zip(task["frames"], lost)])
            self._saw("outside", [[way["kind"], way["address"], came] for way, came in zip(task["outside"], outside)])
            self._saw("held", held)
        return [trouble for trouble in lost if trouble and trouble != SILENT], held

    def _serve(self) -> None:
        task = self._task
        letter = {key: task[key] for key in ("play", "urls", "families", "patience")}
        provisioning = task["provisioning"]
        if provisioning:
            pxe.serve(MEDIUM, _link_of(provisioning["mac"]), provisioning, letter, task["port"])
        files = pxe.SERVED if provisioning else None
        server = Server(task["port"], self._answer, Image(MEDIUM, letter), task["path"], files)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def _take_addresses(self) -> None:
        for address in self._task["vips"]:
            links.add_address(self._link, address, 128 if ":" in address else 32)
            pings.announce(self._link, self._task["mac"], address)
        self._saw("taken", links.addresses(self._link))

    def _drive(self, *, only_ask: bool = False) -> None:
        with ThreadPoolExecutor(len(self._task["nodes"]) or 1) as pool:
            drivers = [Driver(node, self._task, self._channel, self._reports) for node in self._task["nodes"]]
            list(pool.map(lambda driver: driver.play(only_ask=only_ask), drivers))

    def _answer(self, method: str, path: str, said: Any) -> dict[str, Any] | None:
        if method == "GET":
            return {"play": self._task["play"]}
        node = next((node for node in self._task["nodes"] if node["uuid"] == said.get("uuid")), None)
        if node is None:
            return {}
        if path == "/report":
            return self._hear(node, said)
        self._reports.add(node["uuid"], path.strip("/"), said)
        return {}

    def _hear(self, node: Mapping[str, Any], said: dict[str, Any]) -> dict[str, Any]:
        """A node that was started from its medium is kept waiting for the others: they will look for each other."""
        from_disk = said.get("medium", "").startswith("/dev/")
        said["late"] = said.get("play") != self._task["play"]
        again = not from_disk and node["uuid"] in self._reports.up
        self._reports.add(node["uuid"], "disk" if from_disk else "medium again" if again else "medium", said)
        if from_disk or again:
            return {}
        self._reports.gather(node["uuid"])
        return {
            "write": True,
            "play": self._task["play"],
            "hints": node["hints"],
            "image": self._task["path"],
            "names": node["names"],
            "dns": node["dns"],
            "peers": node["peers"],
            "vips": self._task["vip_urls"],
        }


def _link_of(mac: str) -> str:
    return next(link for link, its_mac in links.cards().items() if its_mac == mac)


def _lost_frames(way: Mapping[str, Any]) -> str:
    trouble = pings.ping(way["address"], 2.0, way["bytes"]).trouble
    return SILENT if trouble and pings.ping(way["address"], 2.0).trouble else trouble


def _reaches(way: Mapping[str, Any]) -> bool:
    """The same as the host asks: what does not answer the host either says nothing about this network."""
    if way["kind"] == "ping":
        return pings.ping(way["address"], 3.0).milliseconds is not None
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline:
        if lookups.answers_dns(way["address"], way["name"], 1.0):
            return True
    return False
