"""Watches a run on a terminal of 80 columns and in the head's status, while its nodes are killed and its head is restarted.

    soak.py TROUPE CONFIG [SECONDS]

A person must believe what is seen: no line wraps, no step goes back but in a recovery, no rate is ten times the usual, no time
left is negative, and what is not known is absent. `audit` must find no flaw in the run.
"""

import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

from cluster import Cluster, Failed, check, children, get, read, until

program, config = (os.path.abspath(path) for path in sys.argv[1:3])  # It works in folders of its own.
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 20
columns = 80
progress = re.compile(
    r"step (\d+) of (\d+) +(\d+) %(?:  loss ([\d.e+-]+|nan|inf))?(?:  ([\d,.]+) tokens/s)?(?:  (.+ left))?(?:  .*)?$")


class Terminal:
    """A process on a terminal, and all that it printed there."""

    def __init__(self, *words):
        self.end, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen([program, *words], stdin=end, stdout=end, stderr=end)
        os.close(end)
        self.said = ""

    def read(self, wait):
        if select.select([self.end], [], [], wait)[0]:
            try:
                self.said += os.read(self.end, 65536).decode()
            except OSError:  # Its last process has closed the terminal.
                return False
        return True

    def lines(self):
        """Returns the lines that stay, and the texts of the line that is overwritten, in their order."""
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", self.said)
        return [part for part in re.split(r"[\r\n]+", text) if part]


class Watched:
    def __init__(self):
        self.rates, self.lefts, self.progress = [], [], 0
        self.step, self.may_go_back, self.told = 0, False, 0

    def look_at(self, line):
        check(len(line) <= columns, f"a line of {len(line)} columns: {line!r}")
        check(not re.search(r"\bnan\b|\binf\b|-\d+ (s|min|h)\b", line), f"an impossible number: {line!r}")
        found = progress.match(line)
        if not found:
            self.told += 1
            # A warning, a recovery, or a run that begins again announces that steps are done again.
            self.may_go_back = self.may_go_back or "recover" in line or "warning" in line or "head" in line or ": running" in line
            return
        self.progress += 1
        step, total, share = int(found[1]), int(found[2]), int(found[3])
        check(step >= self.step or self.may_go_back, f"the step went back from {self.step}: {line!r}")
        if step > self.step:
            self.may_go_back = False
        self.step = step
        check(share == 100 * step // total, f"the share is not that of the step: {line!r}")
        if found[5]:
            self.rates.append(float(found[5].replace(",", "")))
            check(self.rates[-1] > 0, f"an unknown rate is shown: {line!r}")
        if found[6]:
            self.lefts.append(found[6])

    def judge(self):
        check(self.progress > 50, f"only {self.progress} progress lines")
        usual = statistics.median(self.rates)
        check(max(self.rates) <= 10 * usual, f"a rate of {max(self.rates)}, usual are {usual}")
        check(self.lefts, "the time left was never shown")


def status(cluster):
    try:
        return json.loads(get(cluster.page() + "api/status"))
    except OSError:  # The head is away.
        return None


def look_at_status(answer):
    for run in answer.get("runs", []):
        check(0 <= run["step"] <= run["steps"], f"status: {run}")
        check(run.get("loss") is None or 0 < run["loss"] < 20, f"status: an impossible loss: {run}")
        check(run.get("goodput") is None or 0 < run["goodput"] <= 1, f"status: an impossible goodput: {run}")


def main():
    draw = random.Random(1)
    with Cluster(program) as cluster:
        head = cluster.start_head("--supervised")
        nodes = [cluster.start_node(name) for name in ("alpha", "beta")]
        terminal = Terminal("submit", config, "--set", "name=soak", "--set", "pipeline.stages=2", "--set", "train.steps=1000000",
                            "--set", "train.eval_every=200", "--set", "checkpoint.every=50 steps", "--wait")
        watched, seen, end = Watched(), 0, time.monotonic() + seconds
        next_kill, deaths, head_kills = time.monotonic() + 3, 0, 0
        while time.monotonic() < end:
            terminal.read(0.2)
            lines = terminal.lines()[:-1]  # The last one may be incomplete.
            for line in lines[seen:]:
                watched.look_at(line)
            seen = len(lines)
            if answer := status(cluster):
                look_at_status(answer)
            if time.monotonic() >= next_kill:
                next_kill = time.monotonic() + 2 + 4 * draw.random()
                if head_kills < 1 + seconds // 60 and time.monotonic() > end - seconds / 2:
                    head_kills += 1
                    for pid in children(head.pid):
                        os.kill(pid, signal.SIGKILL)
                elif pids := children(draw.choice(nodes).pid):
                    deaths += 1
                    os.kill(pids[0], signal.SIGKILL)
        check(deaths >= 2 and head_kills >= 1, f"{deaths} nodes and {head_kills} heads died")
        until(lambda: read("head.log").count("restarting it") == head_kills, "each head that died is started again")
        # The run ends, and the terminal says so.
        until(lambda: status(cluster) is not None, "the head answers again")
        cluster.run("stop", "soak")
        while terminal.read(1) and terminal.process.poll() is None:
            pass
        for line in terminal.lines()[seen:]:
            watched.look_at(line)
        watched.judge()
        audit = subprocess.run([program, "audit", "soak"], capture_output=True, text=True, check=False)
        check(audit.returncode == 0, f"audit: {audit.stdout}{audit.stderr}")
        print(f"{deaths} nodes and {head_kills} heads died in {seconds:.0f} s; step {watched.step}; {watched.progress} progress lines "
              f"and {watched.told} others, all within {columns} columns; rates: median {statistics.median(watched.rates):,.0f}, "
              f"most {max(watched.rates):,.0f} tokens/s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            main()
        except Failed as failed:
            sys.exit(f"soak: {failed}")
