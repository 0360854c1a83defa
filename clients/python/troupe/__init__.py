"""Speak to a head of Troupe: submit runs, follow them, change them, and play with failure.

    from troupe import Client

    with Client("127.0.0.1:4700") as head:
        run = head.submit("config/quickstart.toml", optimizer__lr=1e-3)
        for event in head.events(run):
            if event["type"] == "step":
                print(event["step"], event["loss"])

Needs pyzmq and msgpack, and nothing else.
"""

from .client import Client, default_head
from .keys import Keys
from .wire import HeadError, NoHead

__all__ = ["Client", "HeadError", "Keys", "NoHead", "default_head"]
