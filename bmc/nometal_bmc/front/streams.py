# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""EventService: events as they happen, by Server-Sent Events. Each who listens is one of its subscriptions."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.events.log import BOOT, MEDIA, POWER, SETTINGS, Event, now
from nometal_bmc.redfish.list_views import ROOT, collection
from nometal_bmc.redfish.service_views import CHASSIS_PATH
from nometal_bmc.redfish.wishes import PARAMETER, Kinds, checked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Account
    from nometal_bmc.events.log import EventLog

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

__all__ = ["STREAM", "Stream", "Streams", "add_routes"]

SERVICE_PATH = f"{ROOT}/EventService"
SSE_PATH, SUBSCRIPTIONS_PATH = f"{SERVICE_PATH}/SSE", f"{SERVICE_PATH}/Subscriptions"
TEST_PATH = f"{SERVICE_PATH}/Actions/EventService.SubmitTestEvent"
STREAM = "nometal_bmc.stream"
"""In the environment of a request: what answers it from now on."""
TYPES = {POWER: "StatusChange", BOOT: "ResourceUpdated", MEDIA: "ResourceUpdated", SETTINGS: "ResourceUpdated"}
"""What clients are sent; logins are not among it."""
MESSAGE_ID = "ResourceEvent.1.0.ResourceChanged"
MOST_OF_AN_ACCOUNT, MOST_STREAMS, MOST_WAITING = 8, 64, 200
BEAT_SECONDS = 10.0
BEAT = b": still there\n\n"
TEST: Kinds = dict.fromkeys(
    ("EventId", "EventTimestamp", "EventType", "Message", "MessageId", "OriginOfCondition", "Severity"), (str,)
) | {"MessageArgs": (list,)}


class Stream:
    """A client that listens: events come from threads, and leave in the server's loop."""

    def __init__(self, account: Account, address: str, streams: Streams) -> None:
        self.account = account
        self.address = address
        self.id = secrets.token_hex(8)
        self._streams = streams
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._ended = False
        self._wake: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def concerns(self, event: Event) -> bool:
        return self.account.systems is None or event.system in self.account.systems

    def put(self, event: Event) -> None:
        """Who does not take what he has asked for is let go, and may come again."""
        with self._lock:
            self._waiting.append(_framed(event))
        if len(self._waiting) > MOST_WAITING:
            self._ended = True
        self._wake_up()

    def end(self) -> None:
        self._ended = True
        self._wake_up()

    async def run(self, receive: Receive, send: Send) -> None:
        """Send the body of the answer, until the client leaves or is let go."""
        loop, wake = asyncio.get_running_loop(), asyncio.Event()
        self._wake = loop, wake
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(lambda _gone: wake.set())
        try:
            await _send(send, BEAT)
            while not gone.done() and not self._ended and self._streams.wants(self):
                wake.clear()
                await self._send_waiting(send)
                try:
                    await asyncio.wait_for(wake.wait(), BEAT_SECONDS)
                except asyncio.TimeoutError:
                    await _send(send, BEAT)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self._streams.close(self)

    async def _send_waiting(self, send: Send) -> None:
        with self._lock:
            parts = b"".join(self._waiting)
            self._waiting.clear()
        if parts:
            await _send(send, parts)

    def _wake_up(self) -> None:
        if self._wake is not None:
            loop, wake = self._wake
            loop.call_soon_threadsafe(wake.set)


class Streams:
    """All who listen."""

    def __init__(self, log: EventLog, current: CurrentConfig) -> None:
        self._current = current
        self._lock = threading.Lock()
        self._streams: list[Stream] = []
        log.listen(self._offer)

    def open(self, account: Account, address: str) -> Stream:
        stream = Stream(account, address, self)
        with self._lock:
            own = [other for other in self._streams if other.account.name == account.name]
            if len(own) >= MOST_OF_AN_ACCOUNT or len(self._streams) >= MOST_STREAMS:
                text = f"There are {len(own)} event streams of {account.name} and {len(self._streams)} altogether."
                raise Refused(503, "CreateLimitReachedForResource", text, headers={"Retry-After": "30"})
            self._streams.append(stream)
        return stream

    def of(self, account: Account) -> list[Stream]:
        """Those that it may see and end: its own, or all if it commands all systems."""
        return [s for s in list(self._streams) if account.systems is None or s.account.name == account.name]

    def find(self, account: Account, stream_id: str) -> Stream:
        for stream in self.of(account):
            if stream.id == stream_id:
                return stream
        raise not_found(f"{SUBSCRIPTIONS_PATH}/{stream_id}")

    def close(self, stream: Stream) -> None:
        with self._lock:
            self._streams = [other for other in self._streams if other is not stream]

    def wants(self, stream: Stream) -> bool:
        """While its account is as it was when it came in."""
        return self._current.config.account(stream.account.name) == stream.account

    def end(self) -> None:
        """The service ends."""
        for stream in list(self._streams):
            stream.end()

    def _offer(self, event: Event) -> None:
        if event.kind in TYPES:
            for stream in list(self._streams):
                if stream.concerns(event):
                    stream.put(event)


def add_routes(app: flask.Flask) -> None:
    """Whoever comes here is known already."""
    add = app.add_url_rule
    add(SERVICE_PATH, "event_service", _service, methods=["GET"])
    add(SSE_PATH, "event_stream", _stream, methods=["GET"])
    add(TEST_PATH, "event_test", _test, methods=["POST"])
    add(SUBSCRIPTIONS_PATH, "event_subscriptions", _subscriptions, methods=["GET"])
    add(f"{SUBSCRIPTIONS_PATH}/<stream_id>", "event_subscription", _subscription, methods=["GET"])
    add(f"{SUBSCRIPTIONS_PATH}/<stream_id>", "event_subscription_end", _end, methods=["DELETE"])


def _streams() -> Streams:
    streams: Streams = flask.current_app.extensions["nometal_bmc"].streams
    return streams


def _service() -> dict[str, Any]:
    return {
        "@odata.type": "#EventService.v1_1_0.EventService",
        "@odata.id": SERVICE_PATH,
        "Id": "EventService",
        "Name": "Event Service",
        "Status": {"State": "Enabled", "Health": "OK"},
        "ServiceEnabled": True,
        "EventTypesForSubscription": sorted({*TYPES.values()}),
        "ServerSentEventUri": SSE_PATH,
        "Subscriptions": {"@odata.id": SUBSCRIPTIONS_PATH},
        "Actions": {"#EventService.SubmitTestEvent": {"target": TEST_PATH}},
    }


def _stream() -> flask.Response:
    if flask.request.method == "GET":  # HEAD wants to know what it would be
        flask.request.environ[STREAM] = _streams().open(flask.g.account, flask.request.remote_addr or "")
    endless: Iterator[bytes] = iter(())  # of no known length
    return flask.Response(endless, content_type="text/event-stream")


def _test() -> tuple[str, int]:
    """To the caller's own streams only, and into no log: nothing has happened."""
    asked = checked(flask.request.json, TEST, words=PARAMETER) if flask.request.json else {}
    event = Event(0, now(), POWER, asked.get("Message", "A test"), account=flask.g.account.name)
    for stream in _streams().of(flask.g.account):
        if stream.account.name == flask.g.account.name:
            stream.put(event)
    return "", 204


def _subscriptions() -> dict[str, Any]:
    own = [stream.id for stream in _streams().of(flask.g.account)]
    return collection("EventDestination", SUBSCRIPTIONS_PATH, "Event Subscriptions", own)


def _subscription(stream_id: str) -> dict[str, Any]:
    stream = _streams().find(flask.g.account, stream_id)
    host = f"[{stream.address}]" if ":" in stream.address else stream.address
    return {
        "@odata.type": "#EventDestination.v1_3_0.EventDestination",
        "@odata.id": f"{SUBSCRIPTIONS_PATH}/{stream.id}",
        "Id": stream.id,
        "Name": f"Event stream of {stream.account.name}",
        "Destination": f"http://{host}/",
        "Context": stream.account.name,
        "Protocol": "Redfish",
        "SubscriptionType": "SSE",
        "EventFormatType": "Event",
    }


def _end(stream_id: str) -> tuple[str, int]:
    _streams().find(flask.g.account, stream_id).end()
    return "", 204


def _framed(event: Event) -> bytes:
    """As the standard of Server-Sent Events has it: lines of one block, that ends with an empty one."""
    number = f"{event.system or 'service'}-{event.id}"
    origin = f"{ROOT}/Systems/{event.system}" if event.system else CHASSIS_PATH
    record = {
        "MemberId": "0",
        "EventId": number,
        "EventType": TYPES.get(event.kind, "Alert"),
        "EventTimestamp": event.time,
        "Severity": "Warning" if event.failed else "OK",
        "Message": event.message,
        "MessageId": MESSAGE_ID,
        "MessageArgs": event.arguments,
        "OriginOfCondition": {"@odata.id": origin},
    }
    whole = {"@odata.type": "#Event.v1_2_0.Event", "Id": number, "Name": "Event", "Events": [record]}
    return f"id: {number}\ndata: {json.dumps(whole)}\n\n".encode()


async def _send(send: Send, part: bytes) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
