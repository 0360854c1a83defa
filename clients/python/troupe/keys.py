"""CURVE keys, as `troupe keys new` writes them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq


@dataclass(frozen=True)
class Keys:
    """A key pair and the head's public key. Without keys a connection stays on this machine."""

    public: str
    secret: str
    head: str

    @classmethod
    def read(cls, path: str | os.PathLike[str], head: str) -> Keys:
        """Reads a file of `troupe keys new`. `head` is the public key that the head prints."""
        words = dict(
            line.split(" ", 1)
            for line in Path(path).read_text().splitlines()
            if line.startswith(("public ", "secret "))
        )
        if set(words) != {"public", "secret"}:
            raise ValueError(f"{path}: wanted a line `public KEY` and a line `secret KEY`")
        return cls(words["public"], words["secret"], head)

    @classmethod
    def from_environment(cls) -> Keys | None:
        """Reads the variables TROUPE_KEYS and TROUPE_HEAD_KEY, as the program does."""
        path, head = os.environ.get("TROUPE_KEYS"), os.environ.get("TROUPE_HEAD_KEY")
        return cls.read(path, head) if path and head else None

    def apply_to(self, socket: Any) -> None:
        socket.setsockopt(zmq.CURVE_PUBLICKEY, self.public.encode())
        socket.setsockopt(zmq.CURVE_SECRETKEY, self.secret.encode())
        socket.setsockopt(zmq.CURVE_SERVERKEY, self.head.encode())
