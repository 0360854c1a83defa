"""Heads, nodes and runs of a test as processes, in the current folder. Nothing sleeps without a condition."""

import contextlib
import os
import re
import select
import signal
import subprocess
import time
import urllib.request

patience = 60


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


def until(condition, what, seconds=patience):
    """Waits until a condition holds, and returns its value. What it reads may be away for a while."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := condition():
                return found
        except (OSError, IndexError, KeyError):
            pass
        check(time.monotonic() < end, f"in {seconds} s: {what}")
        select.select([], [], [], 0.05)


def get(address):
    with urllib.request.urlopen(address, timeout=5) as answer:
        return answer.read().decode()


def read(path):
    with open(path) as file:
        return file.read()


def children(parent):
    """Returns the children of a process, whichever thread started them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"\nPPid:\t{parent}\n" in read(f"/proc/{pid}/status"):
                found.append(int(pid))
        except OSError:  # It has ended.
            continue
    return found


class Cluster:
    """A head and its nodes. They end with the `with` statement."""

    def __init__(self, program):
        self.program = program
        self.processes = []

    def __enter__(self):
        os.environ["HOME"] = os.getcwd()
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait(timeout=patience)

    def start(self, log, *words, **environment):
        """Starts a process that writes to a log."""
        self.processes.append(subprocess.Popen(words, stdout=open(log, "w"), stderr=subprocess.STDOUT, env={**os.environ, **environment}))
        return self.processes[-1]

    def start_head(self, *flags):
        """Starts a head, which commands of this test then address."""
        head = self.start("head.log", self.program, "head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0", "--http", "127.0.0.1:0", *flags)
        until(lambda: "its page:" in read("head.log"), "the head says where its page is")
        os.environ["TROUPE_HEAD"] = re.search(r"leads at tcp://(\S+);", read("head.log"))[1]
        return head

    @staticmethod
    def page():
        """Returns the address of the head's page. A head that was started again has another one, since its port is 0 here."""
        return re.findall(r"its page: +(http://\S+/)", read("head.log"))[-1]

    def start_node(self, name, **environment):
        node = self.start(f"{name}.log", self.program, "node", "--name", name, "--cores", "1", **environment)
        until(lambda: "joined" in read(f"{name}.log"), f"{name} joins")
        return node

    def run(self, *words):
        subprocess.run([self.program, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
