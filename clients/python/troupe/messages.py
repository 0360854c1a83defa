"""The messages that a script may send to a head.

A test generates this file from transport/wire/message_types.h; do not edit it.
"""

from __future__ import annotations

from typing import Literal

MessageName = Literal[
    "hello",
    "status",
    "run.list",
    "run.get",
    "run.submit",
    "run.events",
    "run.set",
    "run.checkpoint",
    "run.pause",
    "run.resume",
    "run.stop",
    "node.list",
    "node.cordon",
    "node.uncordon",
    "node.drain",
    "node.end",
    "stacks",
    "probe",
    "config.validate",
    "plan.request",
    "sim.request",
    "chaos",
]
