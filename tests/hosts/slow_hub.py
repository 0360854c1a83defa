#!/usr/bin/env python3
"""Joins network devices like a switch, in user space. Delays each frame and drops some.

    slow_hub.py [--rate BITS_PER_SECOND] DELAY_SECONDS LOSS DEVICE...
    slow_hub.py --whole-frames DEVICE     on the sender's side, first

With a rate, a frame to a device waits for earlier frames to it. A frame that would wait for longer
than LONGEST_QUEUE seconds is dropped. Says "ready" once it forwards. Many kernels of virtual
machines lack netem, which does the same.
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
LONGEST_QUEUE = 1.0


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
    words = sys.argv[1:]
    rate = 0.0
    if words[0] == "--rate":
        rate, words = float(words[1]), words[2:]
    delay, loss, devices = float(words[0]), float(words[1]), words[2:]
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
    free = [0.0] * len(ports)  # When all that went to a port before is through.
    port_of: dict[bytes, int] = {}  # Keyed by the address of the machine behind the port.
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
            now = time.monotonic()
            port_of[frame[6:12]] = ports.index(port)
            known = port_of.get(frame[:6])
            for to, other in enumerate(ports):
                if other is port or (known is not None and known != to) or chance.random() < loss:
                    continue
                if rate > 0:
                    if free[to] - now > LONGEST_QUEUE:
                        continue
                    free[to] = max(now, free[to]) + 8 * len(frame) / rate
                count += 1
                heapq.heappush(late, (max(now, free[to]) + delay, count, to, frame))


main()
