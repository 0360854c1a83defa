#!/usr/bin/env python3
"""Joins network devices like a hub, in user space. Delays each frame and drops some.

    slow_hub.py DELAY_SECONDS LOSS DEVICE...
    slow_hub.py --whole-frames DEVICE     on the sender's side, first

Says "ready" once it forwards. The kernel's own netem is missing from many kernels of virtual machines.
"""

import ctypes
import fcntl
import heapq
import random
import select
import socket
import struct
import sys
import time

SIOCETHTOOL = 0x8946
# Turns offloads off, so that frames are complete and have checksums: ETHTOOL_SRXCSUM, STXCSUM,
# STSO, SGSO, SGRO.
OFFLOADS = (0x15, 0x17, 0x1F, 0x24, 0x2C)
ETH_P_ALL = 3
PACKET_OUTGOING = 4


def switch_off_offloads(device: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(control, SIOCETHTOOL, request)
            except OSError:
                pass  # This device lacks the offload.


def main() -> None:
    if sys.argv[1] == "--whole-frames":
        return switch_off_offloads(sys.argv[2])
    delay, loss, devices = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    ports = []
    for device in devices:
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        port.bind((device, 0))
        port.setblocking(False)
        ports.append(port)
    chance = random.Random(1)
    late: list[tuple[float, int, int, bytes]] = []
    count = 0
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, _, to, frame = heapq.heappop(late)
            try:
                ports[to].send(frame)
            except OSError:
                pass  # Dropped, as on a full link.
        wait = max(0.0, late[0][0] - now) if late else None
        for port in select.select(ports, [], [], wait)[0]:
            try:
                frame, address = port.recvfrom(1 << 16)
            except BlockingIOError:
                continue
            if address[2] == PACKET_OUTGOING:
                continue
            for to, other in enumerate(ports):
                if other is port or chance.random() < loss:
                    continue
                count += 1
                heapq.heappush(late, (time.monotonic() + delay, count, to, frame))


main()
