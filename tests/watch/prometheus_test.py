"""A real Prometheus reads the head's metrics, evaluates the alert rules, and answers the questions of the Grafana board.

    prometheus_test.py TROUPE CONFIG RULES BOARD FAKE_NVML        exits with 77 if there is no Prometheus
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
import urllib.parse

from cluster import Cluster, Failed, check, children, get, patience, read, until

program, config, rules, board, fake_nvml = sys.argv[1:6]
alerts_test = os.path.join(os.path.dirname(os.path.abspath(__file__)), "alerts_test.yml")
if not (shutil.which("prometheus") and shutil.which("promtool")):
    print("skipped: prometheus is not installed")
    sys.exit(77)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def promtool(*words, text=None):
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"promtool {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def exported_names(metrics):
    """Returns the names under which Prometheus finds these metrics."""
    names = {"up"}  # Prometheus itself adds it.
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", metrics, flags=re.M):
        names |= {name + part for part in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def names_in(expression):
    """Returns the metrics that an expression names. Ours all begin with a known word."""
    return set(re.findall(r"\b(?:troupe_\w+|process_\w+|up)\b", expression))


class Prometheus:
    def __init__(self, cluster, metrics):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}/api/v1/"
        with open("prometheus.yml", "w") as file:
            jobs = [{"job_name": "troupe", "static_configs": [{"targets": [metrics]}], "authorization": {"credentials_file": "token"}},
                    {"job_name": "without_token", "static_configs": [{"targets": [metrics]}]}]
            json.dump({"global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"}, "rule_files": [rules], "scrape_configs": jobs}, file)
        promtool("check", "config", "prometheus.yml")
        cluster.start("prometheus.log", "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                      f"--web.listen-address=127.0.0.1:{port}")

    def ask(self, what):
        return json.loads(get(self.address + what))["data"]

    def value(self, query):
        """Returns the value of a query that has one, or nothing."""
        result = self.ask("query?query=" + urllib.parse.quote(query))["result"]
        return float(result[0]["value"][1]) if result else None

    def alert(self, name):
        """Returns the state of an alert rule: `inactive`, `pending` or `firing`."""
        for rule in self.rules():
            if rule["name"] == name:
                return rule["state"]
        raise Failed(f"there is no rule {name}")

    def rules(self):
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]


def check_rules(prometheus, names):
    with open(rules) as file:
        wanted = re.findall(r"- alert: (\w+)", file.read())
    found = until(lambda: (all_rules := prometheus.rules()) and all(rule["health"] == "ok" for rule in all_rules) and all_rules,
                  "Prometheus evaluates all rules")
    check([rule["name"] for rule in found] == wanted, f"the rules are {[rule['name'] for rule in found]}")
    for rule in found:
        check(names_in(rule["query"]) and names_in(rule["query"]) <= names,
              f"{rule['name']} names what the head does not export: {names_in(rule['query']) - names}")
    check(prometheus.alert("TroupeHeadDown") == "inactive", "the head is called down")
    check(prometheus.alert("TroupeRunFailed") == "inactive", "the run is called failed")


def check_board(prometheus, names):
    with open(board) as file:
        content = json.load(file)
    variables = {one["name"]: one for one in content["templating"]["list"]}
    questions = [(panel["title"], target["expr"]) for panel in content["panels"] for target in panel["targets"]]
    check(len(questions) > 15, f"the board has {len(questions)} questions")
    for one in variables.values():
        query = one["query"]["query"] if one["type"] == "query" else ""
        check(names_in(query) <= names, f"variable {one['name']}: {names_in(query) - names}")
    for title, question in questions:
        check(names_in(question) and names_in(question) <= names, f"{title}: it names what the head does not export: {names_in(question) - names}")
        unknown = set(re.findall(r"\$(\w+)", question)) - set(variables) - {"__rate_interval"}
        check(not unknown, f"{title}: nothing says what {unknown} is")
        asked = question.replace("$__rate_interval", "5s").replace("$head", ".*").replace("$run", ".*")
        until(lambda asked=asked: prometheus.value(asked) is not None, f"Prometheus answers {title}: {asked}")
    return len(questions)


def run_test(cluster):
    with open("token", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("a-token-for-Prometheus-alone\n")
    cluster.start_head("--allow-chaos", "--metrics", "0.0.0.0:0", "--metrics-token-file", "token")
    until(lambda: "its metrics:" in read("head.log"), "the head says where its metrics are")
    metrics_port = re.search(r"http://0.0.0.0:(\d+)/metrics", read("head.log"))[1]
    page = re.search(r"http://(\S+)/", cluster.page())[1]
    node = cluster.start_node("alpha", LD_LIBRARY_PATH=fake_nvml)
    cluster.start_node("beta")
    cluster.run("submit", config, "--set", "name=r", "--set", "pipeline.stages=2", "--set", "train.steps=1000000", "--set", "checkpoint.every=20 steps")

    def exports(pattern):
        return re.search(pattern, get(f"http://{page}/metrics"))

    # A process of the node dies, so that recoveries have numbers, and then it is slow.
    until(lambda: exports(r'troupe_run_checkpoints_total\{run="r"\} [1-9]'), "a checkpoint is counted")
    os.kill(children(node.pid)[0], signal.SIGKILL)
    until(lambda: exports(r'troupe_run_recoveries_total\{run="r"\} [1-9]'), "the recovery is counted")
    prometheus = Prometheus(cluster, f"127.0.0.1:{metrics_port}")
    done = int(exports(r'troupe_run_steps_done_total\{run="r"\} (\d+)')[1])
    until(lambda: int(exports(r'troupe_run_steps_done_total\{run="r"\} (\d+)')[1]) > done + 100, "the run knows its usual pace")
    for query in ("up == 1", "troupe_build_info", "rate(troupe_run_steps_done_total[5s]) > 0", "troupe_run_recoveries_total >= 1",
                  "histogram_quantile(0.5, rate(troupe_run_step_seconds_bucket[5s])) > 0", 'troupe_run_state{state="running"} == 1',
                  "troupe_run_left_seconds > 0", "rate(troupe_run_seen_total[5s]) > 1", "troupe_run_recovery_seconds_count >= 1",
                  "histogram_quantile(0.5, rate(troupe_run_save_seconds_bucket[5s])) > 0",
                  'histogram_quantile(0.5, rate(troupe_run_link_wait_seconds_bucket{from="alpha", to="beta"}[5s])) > 0',
                  'rate(troupe_run_link_wait_seconds_sum{from="beta", to="alpha"}[5s]) > 0',
                  "time() - troupe_run_checkpoint_timestamp_seconds < 60", "process_open_fds > 3"):
        until(lambda query=query: prometheus.value(query) is not None, f"Prometheus answers {query}")
    # Nobody gets in without the token.
    until(lambda: prometheus.value('up{job="without_token"} == 0') is not None, "Prometheus without the token is refused")
    refused = [target["lastError"] for target in prometheus.ask("targets")["activeTargets"] if target["labels"]["job"] == "without_token"]
    check("401 Unauthorized" in refused[0], f"without the token: {refused}")
    # The rate that Prometheus computes from the counter is that of the steps' own durations.
    agrees = "rate(troupe_run_step_seconds_count[5s]) / rate(troupe_run_steps_done_total[5s])"
    until(lambda: 0.9 < (prometheus.value(agrees) or 0) < 1.1, "each step has a duration")
    speed = prometheus.value("rate(troupe_run_steps_done_total[5s])")

    cluster.run("chaos", "slow", "beta", "--times", "20", "--for", "3600s")
    # On a busy machine times scatter, and it takes more steps to tell.
    until(lambda: exports("troupe_straggler_share"), "the slow device is named", 2 * patience)
    metrics = get(f"http://{page}/metrics")
    complaints = promtool("check", "metrics", text=metrics)
    check(not complaints, f"promtool: {complaints}\n{metrics}")
    promtool("check", "rules", rules)
    promtool("test", "rules", alerts_test)
    names = exported_names(metrics)
    check_rules(prometheus, names)
    asked = check_board(prometheus, names)
    print(f"promtool finds nothing; {metrics.count('# TYPE')} metrics; {len(prometheus.rules())} alert rules; the board asks {asked} "
          f"questions; {speed:.1f} steps/s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with Cluster(program) as cluster:
                run_test(cluster)
        except Failed as failed:
            sys.exit(f"prometheus_test: {failed}")
        finally:
            os.chdir("/")
