"""A client of a head."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from .configuration import configuration
from .keys import Keys
from .wire import HeadError, NoHead, decode, encode

_PORT = 4700
_HELLO_PATIENCE = 5.0  # Seconds.
_MOST_HANDSHAKES = 2  # A head that starts may end one connection before it answers.
_MONITOR_EVERY = 0.02  # Seconds between looks at a connection that is being made.
_LOOK_EVERY = 0.5  # Seconds; an event is heard at once, this is for those that were not.
_ENDS = ("done", "stopped", "failed")

# What pyzmq's own types say differs between its versions 24 and 26.
Socket = Any

Event = dict[str, Any]
Config = str | os.PathLike[str] | Mapping[str, Any]


def default_head() -> str:
    """TROUPE_HEAD, or else the head that was started last on this machine by this user."""
    if head := os.environ.get("TROUPE_HEAD"):
        return head
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    try:
        return (Path(state) / "troupe" / "head").read_text().split("\n")[0]
    except OSError:
        raise NoHead("no head is known: name one, or set TROUPE_HEAD, or start `troupe head`") from None


def _event(run: str | None, line: str) -> dict[str, Any]:
    """An event, or a warning in place of a line that a full disk or a crash tore."""
    try:
        event: dict[str, Any] = json.loads(line)
        return event
    except ValueError:
        return {"type": "warn", "run": run or "", "text": "a line of events is torn and left out"}


def _endpoint(address: str) -> str:
    if "://" in address:
        return address
    has_port = ":" in address.rsplit("]", 1)[-1]
    return f"tcp://{address}" + ("" if has_port else f":{_PORT}")


class Client:
    """Asks a head, one question after another; not to be shared by threads.

    `patience` is how long, in seconds, an answer may take. What the head refuses raises HeadError.
    """

    def __init__(self, head: str | None = None, keys: Keys | None = None, patience: float = 60.0):
        self._endpoint = _endpoint(head or default_head())
        self._keys = keys or Keys.from_environment()
        self._patience = min(patience, _HELLO_PATIENCE)
        self._context = zmq.Context()
        self._context.linger = 0
        self._monitor: Socket | None = None
        self._socket = self._socket_with_keys(zmq.DEALER)
        self._watch()
        self._socket.connect(self._endpoint)
        try:
            welcome = self.ask("hello")
            rights = str(welcome.get("rights", ""))
            if "operator" not in rights and "viewer" not in rights:
                raise HeadError(
                    f"the head at {self._endpoint} knows these keys as those of a {rights or 'stranger'},"
                    " which may not send requests; give them the role operator or viewer in the head's allow list",
                    code="forbidden",
                )
        except HeadError:
            self.close()
            raise
        self._unwatch()
        self._patience = patience
        self.version: str = welcome["version"]
        self._events: str = welcome["events"]

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections; what was asked goes on."""
        self._context.destroy(linger=0)

    def ask(self, type: str, /, **body: Any) -> dict[str, Any]:
        """Sends any message, and returns the body of its answer."""
        id = secrets.randbits(62) | 1
        self._socket.send_multipart(encode(type, id, body))
        until = time.monotonic() + self._patience
        while (left := until - time.monotonic()) > 0:
            if not self._socket.poll(left * 1000 if self._monitor is None else _MONITOR_EVERY * 1000):
                self._look_at_handshake()
                continue
            answer = decode(self._socket.recv_multipart())
            if answer.re != id:
                continue  # It answers a question whose patience has ended.
            if answer.type == "error":
                said = {key: str(answer.body.get(key, "")) for key in ("code", "path", "hint")}
                raise HeadError(str(answer.body.get("message", "the head refused, and did not say why")), **said)
            return answer.body
        why = self._trouble if self._monitor is not None else "is it still running?"
        raise NoHead(f"the head at {self._endpoint} has not answered {type!r} within {self._patience:g} s; {why}")

    # What is no run yet.

    def validate(self, config: Config, **settings: Any) -> str:
        """Only checks a configuration, and its data on the head's machine; returns warnings."""
        return str(self.ask("config.validate", **configuration(config, settings))["warnings"])

    def plan(self, config: Config, **settings: Any) -> dict[str, Any]:
        """What would run where on the nodes that are there: as `troupe plan --output json` has it,
        and `table` for people."""
        return self.ask("plan.request", **configuration(config, settings))

    def simulate(
        self,
        config: Config,
        *,
        hours: float = 1.0,
        fail_every: float = 0.0,
        notice: float = 0.0,
        spot: bool = False,
        seed: int = 1,
        **settings: Any,
    ) -> dict[str, Any]:
        """Hours of a run on the nodes that are there, while they come and go: as `troupe sim
        --output json` has it."""
        return self.ask(
            "sim.request", config=configuration(config, settings), hours=float(hours), seed=seed,
            fail_every=float(fail_every), notice=float(notice), spot=spot,
        )

    # Runs.

    def submit(
        self,
        config: Config,
        *,
        resume: bool = False,
        **settings: Any,
    ) -> str:
        """Gives a run to the head and returns its name.

        `config` is a file or a table. Settings lie over it: `optimizer__lr=1e-3`, or
        `**{"optimizer.lr": 1e-3}`. With `resume` it goes on from its newest checkpoint.
        """
        body = configuration(config, settings)
        if resume:
            body["resume"] = True
        return str(self.ask("run.submit", **body)["run"])

    def runs(self) -> list[dict[str, Any]]:
        """How all runs stand: name, state, step, steps, loss, where, why."""
        return list(self.ask("run.list")["runs"])

    def status(self, run: str | None = None) -> dict[str, Any]:
        """How one run stands; without a name the runs and the nodes of the head."""
        return self.ask("run.get", run=run) if run else self.ask("status")

    def stop(self, run: str, *, now: bool = False) -> None:
        """Finishes the step, saves and ends; with `now` it just ends."""
        self.ask("run.stop", run=run, mode="now" if now else "drain")

    def pause(self, run: str) -> None:
        self.ask("run.pause", run=run)

    def resume(self, run: str) -> None:
        """Lets a paused run go on."""
        self.ask("run.resume", run=run)

    def checkpoint(self, run: str) -> int:
        """Saves now, and returns the number of steps that are in it."""
        return int(self.ask("run.checkpoint", run=run)["step"])

    def set(self, run: str, key: str, value: Any, *, after: int | None = None) -> int:
        """Changes a live key, such as optimizer.lr, and returns after how many steps it holds.

        A rate may be set for a later step: `after=500`. It is part of the run's record from then on.
        """
        body: dict[str, Any] = {"run": run, "set": f"{key}={json.dumps(value)}"}
        if after is not None:
            body["from"] = after
        step = int(self.ask("run.set", **body)["step"])
        return step if after is None else after

    # Events.

    def events(self, run: str | None = None, *, follow: bool = True) -> Iterator[Event]:
        """All events of a run from its first one on, each once, until it has ended.

        Without `follow` those that there are now. Without a run: the head's own, of nodes that come
        and go, which never end.
        """
        bell = self._socket_with_keys(zmq.SUB)
        bell.setsockopt(zmq.SUBSCRIBE, b"" if run is None else f"{run}/".encode())
        bell.connect(self._events)
        try:
            at = 0
            begun = ""  # A line that is longer than a page, so far.
            while True:
                # First whether it has ended: then what is read below is all that there is.
                has_ended = run is not None and self.status(run)["state"] in _ENDS
                while True:
                    page = self.ask("run.events", run=run or "", **{"from": at})
                    at = page["next"]
                    if not page["lines"]:
                        break
                    begun += page["lines"]
                    if page.get("goes_on"):
                        continue
                    lines, begun = begun.split("\n"), ""
                    yield from (_event(run, line) for line in lines if line)
                if has_ended or not follow:
                    return
                self._wait(bell)
        finally:
            bell.close(linger=0)

    def wait(self, run: str) -> dict[str, Any]:
        """Waits until a run has ended, and returns how it stands then."""
        for _ in self.events(run):
            pass
        return self.status(run)

    # Nodes.

    def nodes(self) -> list[dict[str, Any]]:
        return list(self.ask("node.list")["nodes"])

    def drain(self, node: str) -> None:
        """Moves all that a node plays to others, after a save; it gets nothing new."""
        self.ask("node.drain", node=node)

    def cordon(self, node: str) -> None:
        """From now on the node gets nothing new."""
        self.ask("node.cordon", node=node)

    def uncordon(self, node: str) -> None:
        self.ask("node.uncordon", node=node)

    def end_nodes(self, node: str | None = None) -> list[str]:
        """Asks a node, or all, to leave their runs and end for good. Returns their names; they may still be there."""
        return list(self.ask("node.end", **({"node": node} if node else {}))["nodes"])

    def chaos(self, what: str, target: str, *, seconds: float = 5.0, times: float = 4.0) -> None:
        """A drill: kill, stop, slow (so many times) or partition a node; disk-full for a run.

        Only where the head was started with --allow-chaos.
        """
        self.ask("chaos", what=what, target=target, seconds=float(seconds), times=float(times))

    def _socket_with_keys(self, kind: int) -> Socket:
        socket = self._context.socket(kind)
        if self._keys:
            self._keys.apply_to(socket)
        # The end that dials asks whether the other end lives, and says how long it may be silent itself.
        socket.setsockopt(zmq.HEARTBEAT_IVL, 500)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2000)
        socket.setsockopt(zmq.HEARTBEAT_TTL, 2000)
        return socket

    # The first connection. ZeroMQ itself retries without a word, but its monitor tells why.

    def _watch(self) -> None:
        self._trouble = "a connection is made there, but what answers is no head"
        self._handshakes = 0
        self._monitor = self._socket.get_monitor_socket()

    def _unwatch(self) -> None:
        self._socket.disable_monitor()
        if self._monitor is not None:
            self._monitor.close(linger=0)
        self._monitor = None

    def _look_at_handshake(self) -> None:
        """Raises NoHead if trying again cannot help; otherwise remembers what went wrong last."""
        while self._monitor is not None and self._monitor.poll(0):
            event = parse_monitor_message(self._monitor.recv_multipart())["event"]
            if event == zmq.EVENT_CLOSED:
                self._trouble = "nobody listens there; start `troupe head`, or name another address"
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                raise self._refused("it does not know this key; add it to the allow list with the role operator")
            elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                raise self._refused(
                    "it takes no keys, or is no head; leave them out for a head without keys"
                    if self._keys
                    else "it wants keys, or is no head; give Keys.read(FILE, HEAD_KEY), or set TROUPE_KEYS and TROUPE_HEAD_KEY"
                )
            elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                self._handshakes += 1
                self._trouble = "it ends the connection before both ends know each other"
                if self._keys and self._handshakes >= _MOST_HANDSHAKES:
                    # A head without keys may close before it has said so.
                    raise self._refused(
                        "its key is not the head key that was given, or it takes no keys; the head prints its key"
                        " when it starts"
                    )

    def _refused(self, why: str) -> NoHead:
        return NoHead(f"the head at {self._endpoint} does not let this client in: {why}")

    @staticmethod
    def _wait(bell: Socket) -> None:
        """Until something was published, or for a while; of many events one ring is enough."""
        if not bell.poll(_LOOK_EVERY * 1000):
            return
        try:
            while True:
                bell.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            pass
