"""A real Prometheus reads the head's metrics, and its own checker finds nothing to complain of.

    prometheus_test.py TROUPE CONFIG        exits with 77 if there is no Prometheus
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

program, config = sys.argv[1:3]
patience = 60
if not (shutil.which("prometheus") and shutil.which("promtool")):
    print("skipped: prometheus is not installed")
    sys.exit(77)


def get(address):
    with urllib.request.urlopen(address, timeout=5) as answer:
        return answer.read().decode()


def until(condition, what):
    end = time.monotonic() + patience
    while True:
        try:
            if found := condition():
                return found
        except (OSError, IndexError, KeyError):
            pass
        if time.monotonic() > end:
            raise SystemExit(f"prometheus_test: in {patience} s: {what}")
        time.sleep(0.1)


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


def start(processes, log, *words):
    processes.append(subprocess.Popen(words, stdout=open(log, "w"), stderr=subprocess.STDOUT))
    return processes[-1]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run_test(processes):
    os.environ["HOME"] = os.getcwd()
    with open("token", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("a token for Prometheus alone\n".replace(" ", "-"))
    start(processes, "head.log", program, "head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0", "--http", "127.0.0.1:0",
          "--metrics", "0.0.0.0:0", "--metrics-token-file", "token")
    until(lambda: "its metrics:" in read("head.log"), "the head says where its metrics are")
    os.environ["TROUPE_HEAD"] = re.search(r"leads at tcp://(\S+);", read("head.log"))[1]
    page = re.search(r"http://(\S+)/\n", read("head.log"))[1]
    metrics_port = re.search(r"http://0.0.0.0:(\d+)/metrics", read("head.log"))[1]
    node = start(processes, "node.log", program, "node", "--name", "alpha", "--cores", "1")
    until(lambda: "joined" in read("node.log"), "the node joins")
    subprocess.run([program, "submit", config, "--set", "name=r", "--set", "train.steps=1000000", "--set", "checkpoint.every=20 steps"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    # A process of the node dies, so that recoveries have numbers.
    until(lambda: re.search(r'troupe_run_checkpoints_total\{run="r"\} [1-9]', get(f"http://{page}/metrics")), "a checkpoint is counted")
    os.kill(children(node.pid)[0], signal.SIGKILL)
    until(lambda: 'troupe_run_recoveries_total{run="r"} 1' in get(f"http://{page}/metrics"), "the recovery is counted")

    metrics = get(f"http://{page}/metrics")
    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True, check=False)
    if checked.returncode or checked.stdout or checked.stderr:
        raise SystemExit(f"promtool: {checked.stdout}{checked.stderr}\n{metrics}")

    port = free_port()
    with open("prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 500ms}\n" + f"""
scrape_configs:
- job_name: troupe
  static_configs: [{{targets: ['127.0.0.1:{metrics_port}']}}]
  authorization: {{credentials_file: token}}
- job_name: without_token
  static_configs: [{{targets: ['127.0.0.1:{metrics_port}']}}]
""")
    start(processes, "prometheus.log", "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
          f"--web.listen-address=127.0.0.1:{port}")

    def value(query):
        """Returns the value of a query that has one, or nothing."""
        answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}"))
        found = answer["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    for query in ("up == 1", "troupe_build_info", "rate(troupe_run_steps_done_total[5s]) > 0", "troupe_run_recoveries_total == 1",
                  "histogram_quantile(0.5, rate(troupe_run_step_seconds_bucket[5s])) > 0", 'troupe_run_state{state="running"} == 1',
                  "troupe_run_left_seconds > 0", "rate(troupe_run_seen_total[5s]) > 1", "troupe_run_recovery_seconds_count == 1",
                  "time() - troupe_run_checkpoint_timestamp_seconds < 60", "process_open_fds > 3"):
        until(lambda query=query: value(query) is not None, f"Prometheus answers {query}")
    # Nobody else gets in.
    until(lambda: value('up{job="without_token"} == 0') is not None, "Prometheus without the token is refused")
    targets = json.loads(get(f"http://127.0.0.1:{port}/api/v1/targets"))["data"]["activeTargets"]
    refused = [target["lastError"] for target in targets if target["labels"]["job"] == "without_token"]
    if "401 Unauthorized" not in refused[0]:
        raise SystemExit(f"prometheus_test: without the token: {refused}")
    # The rate that Prometheus computes from the counter is that of the steps' own durations.
    agrees = ("rate(troupe_run_step_seconds_count[5s]) / rate(troupe_run_steps_done_total[5s])")
    until(lambda: 0.9 < (value(agrees) or 0) < 1.1, "each step has a duration")
    print(f"promtool finds nothing; {metrics.count('# TYPE')} metrics; {value('rate(troupe_run_steps_done_total[5s])'):.1f} steps/s")


def main():
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run_test(processes)
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(timeout=patience)
            os.chdir("/")


if __name__ == "__main__":
    main()
