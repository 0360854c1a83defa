"""Encodes and decodes messages; transport/wire/wire.h defines the format."""

from __future__ import annotations

import json
import secrets
import struct
from typing import Any, NamedTuple, Sequence

import msgpack

_PRELUDE = struct.Struct("<4sBBHII")
_MAGIC = b"TRPE"
_MAJOR, _MINOR = 1, 0
# The limit of an answer. A head never sends more.
_MOST_BYTES = 8 << 20
# A random number that separates this process from others at the same address.
_INCARNATION = secrets.randbits(62) | 1


class HeadError(Exception):
    """The head refused a request. The text says why and what to do.

    `code` is one of docs/reference/messages.md. If known, `path` is the wrong part of the request and
    `hint` says what to do. An error that the client itself finds has no code.
    """

    def __init__(self, text: str, code: str = "", path: str = "", hint: str = ""):
        super().__init__(text)
        self.code = code
        self.path = path
        self.hint = hint


class NoHead(HeadError):
    """No head answers at the address, or it stopped answering."""


class Message(NamedTuple):
    type: str
    id: int
    re: int
    run: str
    body: dict[str, Any]


def encode(type: str, id: int, body: dict[str, Any]) -> list[bytes]:
    """Returns the parts of a message."""
    envelope = msgpack.packb({"type": type, "id": id, "incarnation": _INCARNATION})
    packed = msgpack.packb(body)
    return [_PRELUDE.pack(_MAGIC, _MAJOR, _MINOR, 0, len(envelope), len(packed)), envelope, packed]


def decode(parts: Sequence[bytes]) -> Message:
    """Returns the message. Raises HeadError if the parts are no message of this version."""
    if len(parts) < 3 or len(parts[0]) != _PRELUDE.size:
        raise HeadError(f"found {len(parts)} parts that are no message of Troupe")
    magic, major, _, _, envelope_bytes, body_bytes = _PRELUDE.unpack(parts[0])
    if magic != _MAGIC or major != _MAJOR:
        raise HeadError(f"found a message of wire version {major}; this client speaks {_MAJOR}")
    if (len(parts[1]), len(parts[2])) != (envelope_bytes, body_bytes) or body_bytes > _MOST_BYTES:
        raise HeadError("found a message whose parts are not as long as it says")
    try:
        envelope = msgpack.unpackb(parts[1])
        body = msgpack.unpackb(parts[2])
        if len(parts) > 3:  # An answer with too many values comes as JSON.
            body = json.loads(parts[3])
    except (ValueError, msgpack.UnpackException) as error:
        raise HeadError(f"found a message that cannot be read: {error}") from error
    if not isinstance(envelope, dict) or not isinstance(body, dict):
        raise HeadError("found a message that is no table")
    return Message(
        type=str(envelope.get("type", "")),
        id=int(envelope.get("id", 0)),
        re=int(envelope.get("re", 0)),
        run=str(envelope.get("run", "")),
        body=body,
    )
