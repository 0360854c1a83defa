"""Controls the runs of a Troupe head, and reads the folders of runs.

    from troupe import Client, history

    with Client("127.0.0.1:4700") as head:
        run = head.submit("config/quickstart.toml", optimizer__lr=1e-3)
        for event in head.events(run):
            if event["type"] == "step":
                print(event["step"], event["loss"])

    print(history("quickstart")["loss"])  # Reads runs/quickstart and needs no head.

The package needs only pyzmq and msgpack.
"""

from .client import Client, default_head
from .keys import Keys
from .runs import Checkpoint, Run, history, read_run
from .version import __version__
from .wire import HeadError, NoHead

__all__ = [
    "Checkpoint",
    "Client",
    "HeadError",
    "Keys",
    "NoHead",
    "Run",
    "__version__",
    "default_head",
    "history",
    "read_run",
]
