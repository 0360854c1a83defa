#!/usr/bin/env python3
"""Captures the packets of an interface, and searches them for the weights of a checkpoint.

    wire.py capture INTERFACE FILE     prints a line once it reads, and another one after SIGINT
    wire.py search FILE FOLDER         "3 of 64 pieces": of the safetensors below the folder
"""

import pathlib
import signal
import socket
import sys

PIECE = 32
PIECES = 256
ALL_PROTOCOLS = 3
BUFFER = 1 << 28


def capture(interface: str, path: str) -> None:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    wire.setsockopt(socket.SOL_SOCKET, 33, BUFFER)  # SO_RCVBUFFORCE: a large buffer, so that no packet is dropped.
    wire.bind((interface, 0))
    wire.settimeout(0.1)
    ends = False

    def end(*_: object) -> None:
        nonlocal ends
        ends = True

    signal.signal(signal.SIGINT, end)
    print("reads", flush=True)
    packets = size = 0
    with open(path, "wb") as file:
        while not ends:
            try:
                packet = wire.recv(1 << 17)
            except TimeoutError:
                continue
            packets += 1
            size += len(packet)
            file.write(packet)
    print(f"{packets} packets with {size} bytes", flush=True)


def pieces_of(folder: str) -> list[bytes]:
    weights = b"".join(file.read_bytes() for file in sorted(pathlib.Path(folder).rglob("*.safetensors")))
    step = max(PIECE, len(weights) // PIECES)
    pieces = [weights[at : at + PIECE] for at in range(0, len(weights) - PIECE, step)]
    # Pieces with many zeros, or of text, are no weights.
    return [piece for piece in pieces if len(set(piece)) > PIECE // 2 and not piece.isascii()]


def search(path: str, folder: str) -> None:
    wire = pathlib.Path(path).read_bytes()
    pieces = pieces_of(folder)
    if not pieces:
        sys.exit(f"there are no weights in {folder}")
    found = sum(piece in wire for piece in pieces)
    print(f"{found} of {len(pieces)} pieces")


if __name__ == "__main__":
    {"capture": capture, "search": search}[sys.argv[1]](sys.argv[2], sys.argv[3])
