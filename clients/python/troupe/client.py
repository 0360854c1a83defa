"""The client of a head."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from .configuration import configuration
from .keys import Keys
from .messages import MessageName
from .wire import HeadError, NoHead, decode, encode

_PORT = 4700
_HELLO_PATIENCE = 5.0  # Seconds.
_MOST_HANDSHAKES = 2  # A head that starts may end one connection before it answers.
_WANTS_KEYS = "it wants keys, or is no head; give Keys.read(FILE, HEAD_KEY), or set TROUPE_KEYS and TROUPE_HEAD_KEY"
_MONITOR_EVERY = 0.02  # Seconds between checks of a connection attempt.
_LOOK_EVERY = 0.5  # Seconds between queries, in case a published event was lost.
_ENDS = ("done", "stopped", "failed")

# pyzmq's own types differ between its versions 24 and 26.
Socket = Any

Event = dict[str, Any]
Config = str | os.PathLike[str] | Mapping[str, Any]


def default_head() -> str:
    """Returns TROUPE_HEAD, the head of this folder or one above, or the one that started last on this machine."""
    if head := os.environ.get("TROUPE_HEAD"):
        return head
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / ".troupe" / "address"
        try:
            # Anybody may make a folder in /tmp: commands below it must not address that person's head.
            if file.stat().st_uid in (os.geteuid(), 0):
                return file.read_text().split("\n")[0]
        except OSError:
            continue
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    try:
        return (Path(state) / "troupe" / "head").read_text().split("\n")[0]
    except OSError:
        raise NoHead("no head is known: name one, or set TROUPE_HEAD, or start `troupe head`") from None


def _event(run: str | None, line: str) -> dict[str, Any]:
    """Returns an event, or a warning if a full disk or a crash tore the line."""
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
    """Sends requests to a head, one at a time. Threads must not share a client.

    `patience` is the timeout of an answer in seconds. A refused request raises HeadError.
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
        """Closes all connections. Runs continue."""
        self._context.destroy(linger=0)

    def ask(self, type: MessageName, /, **body: Any) -> dict[str, Any]:
        """Sends a message that the head answers, and returns the body of the answer."""
        id = secrets.randbits(62) | 1
        self._socket.send_multipart(encode(type, id, body))
        until = time.monotonic() + self._patience
        while (left := until - time.monotonic()) > 0:
            if not self._socket.poll(left * 1000 if self._monitor is None else _MONITOR_EVERY * 1000):
                self._look_at_handshake()
                continue
            answer = decode(self._socket.recv_multipart())
            if answer.re != id:
                continue  # The answer of a request that has timed out.
            if answer.type == "error":
                said = {key: str(answer.body.get(key, "")) for key in ("code", "path", "hint")}
                raise HeadError(str(answer.body.get("message", "the head refused, and did not say why")), **said)
            return answer.body
        why = self._trouble if self._monitor is not None else "is it still running?"
        raise NoHead(f"the head at {self._endpoint} has not answered {type!r} within {self._patience:g} s; {why}")

    # Requests without a run.

    def validate(self, config: Config, **settings: Any) -> str:
        """Checks a configuration and its data on the head's machine, and returns warnings."""
        return str(self.ask("config.validate", **configuration(config, settings))["warnings"])

    def plan(self, config: Config, **settings: Any) -> dict[str, Any]:
        """Plans a configuration for the current nodes. Returns the values of `troupe plan --output
        json`, and `table` for people."""
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
        """Simulates hours of a run on the current nodes, which come and go. Returns the values of
        `troupe sim --output json`."""
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
        extend: int = 0,
        **settings: Any,
    ) -> str:
        """Submits a run to the head and returns its name.

        `config` is a file or a table. Settings override it: `optimizer__lr=1e-3`, or
        `**{"optimizer.lr": 1e-3}`. With `resume` the run continues from its newest checkpoint,
        and with `extend` it trains that many steps beyond its last one.
        """
        body = configuration(config, settings)
        if resume:
            body["resume"] = True
        if extend:
            body["extend"] = extend
        body["host"], body["folder"] = socket.gethostname(), os.getcwd()
        return str(self.ask("run.submit", **body)["run"])

    def runs(self) -> list[dict[str, Any]]:
        """Returns the status of all runs: name, state, step, steps, loss, where, why."""
        return list(self.ask("run.list")["runs"])

    def status(self, run: str | None = None) -> dict[str, Any]:
        """Returns the status of one run, or without a name the runs and nodes of the head."""
        return self.ask("run.get", run=run) if run else self.ask("status")

    def stop(self, run: str, *, now: bool = False) -> None:
        """Finishes the step, saves and stops the run. With `now` it stops without saving."""
        self.ask("run.stop", run=run, mode="now" if now else "drain")

    def pause(self, run: str) -> None:
        self.ask("run.pause", run=run)

    def resume(self, run: str) -> None:
        """Resumes a paused run."""
        self.ask("run.resume", run=run)

    def checkpoint(self, run: str) -> int:
        """Saves now and returns the number of steps in the checkpoint."""
        return int(self.ask("run.checkpoint", run=run)["step"])

    def set(self, run: str, key: str, value: Any, *, after: int | None = None) -> int:
        """Changes a live key, such as optimizer.lr, and returns the step after which it applies.

        A rate may be set for a later step: `after=500`. The run's record contains the change.
        """
        body: dict[str, Any] = {"run": run, "set": f"{key}={json.dumps(value)}"}
        if after is not None:
            body["from"] = after
        step = int(self.ask("run.set", **body)["step"])
        return step if after is None else after

    # Events.

    def events(self, run: str | None = None, *, follow: bool = True) -> Iterator[Event]:
        """Yields all events of a run from the first on, each once, until the run has ended.

        Without `follow` it yields only the existing events. Without a run it yields the head's own
        events, such as those of nodes, which never end.
        """
        bell = self._socket_with_keys(zmq.SUB)
        bell.setsockopt(zmq.SUBSCRIBE, b"" if run is None else f"{run}/".encode())
        bell.connect(self._events)
        try:
            at = 0
            begun = ""  # The beginning of a line that is longer than a page.
            while True:
                # This check comes first, so that the loop below reads all events of an ended run.
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
        """Waits until a run has ended and returns its status."""
        for _ in self.events(run):
            pass
        return self.status(run)

    # Nodes.

    def nodes(self) -> list[dict[str, Any]]:
        return list(self.ask("node.list")["nodes"])

    def drain(self, node: str) -> None:
        """Saves and moves the work of a node to others. The node gets no new work."""
        self.ask("node.drain", node=node)

    def cordon(self, node: str) -> None:
        """Stops giving the node new work."""
        self.ask("node.cordon", node=node)

    def uncordon(self, node: str) -> None:
        self.ask("node.uncordon", node=node)

    def stacks(
        self, run: str | None = None, *, node: str | None = None, stage: int | None = None
    ) -> list[dict[str, Any]]:
        """Returns where the threads of a run's processes are, or those of one node.

        With `stage` only the threads that compute for this stage of the run. A process that does not
        answer has `why` in the place of its threads.
        """
        asked = {"run": run, "node": node, "stage": stage}
        body = {key: value for key, value in asked.items() if value is not None}
        return list(self.ask("stacks", **body)["processes"])

    def probe(self, run: str | None = None) -> list[dict[str, Any]]:
        """Lets the nodes of a run, or all nodes, measure their ways to each other by each carrier."""
        return list(self.ask("probe", **({"run": run} if run else {}))["links"])

    def end_nodes(self, node: str | None = None) -> list[str]:
        """Asks one node, or all, to leave their runs and end for good.

        Returns their names without waiting for their end.
        """
        return list(self.ask("node.end", **({"node": node} if node else {}))["nodes"])

    def chaos(self, what: str, target: str, *, seconds: float = 5.0, times: float = 4.0) -> None:
        """Injects a fault: kill, stop, slow (by the factor `times`) or partition for a node, disk-full
        for a run.

        The head must have been started with --allow-chaos.
        """
        self.ask("chaos", what=what, target=target, seconds=float(seconds), times=float(times))

    def _socket_with_keys(self, kind: int) -> Socket:
        socket = self._context.socket(kind)
        if self._keys:
            self._keys.apply_to(socket)
        # The connecting end sends heartbeats and tells the other end how long it may be silent itself.
        socket.setsockopt(zmq.HEARTBEAT_IVL, 500)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2000)
        socket.setsockopt(zmq.HEARTBEAT_TTL, 2000)
        return socket

    # The first connection. ZeroMQ retries silently, but its monitor reports why.

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
        """Raises NoHead if a retry cannot help. Otherwise it stores the last problem."""
        while self._monitor is not None and self._monitor.poll(0):
            event = parse_monitor_message(self._monitor.recv_multipart())["event"]
            if event == zmq.EVENT_CLOSED:
                self._trouble = "nobody listens there; start `troupe head`, or name another address"
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                raise self._refused("it does not know this key; add it to the allow list with the role operator")
            elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                raise self._refused(
                    "it takes no keys, or is no head; leave them out for a head without keys" if self._keys else _WANTS_KEYS
                )
            elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                self._handshakes += 1
                self._trouble = "it ends the connection before both ends know each other"
                if self._handshakes >= _MOST_HANDSHAKES:
                    # The head may close before it sends the reason.
                    raise self._refused(
                        "its key is not the head key that was given, or it takes no keys; the head prints its key"
                        " when it starts"
                        if self._keys
                        else _WANTS_KEYS
                    )

    def _refused(self, why: str) -> NoHead:
        return NoHead(f"the head at {self._endpoint} does not let this client in: {why}")

    @staticmethod
    def _wait(bell: Socket) -> None:
        """Waits until an event is published or a timeout passes, and discards what has arrived."""
        if not bell.poll(_LOOK_EVERY * 1000):
            return
        try:
            while True:
                bell.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            pass
