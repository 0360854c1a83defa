"""A head sends metrics and traces of a run with two nodes, of which one dies, to a collector. A head whose collector hangs is not held up.

    otlp_test.py TROUPE CONFIG
"""

import http.server
import json
import os
import re
import signal
import sys
import tempfile
import threading

from cluster import Cluster, Failed, check, children, read, until

program, config = sys.argv[1:3]


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what is posted; `answers` says whether it answers."""

    daemon_threads = True

    def __init__(self, answers=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.bodies = {"/v1/metrics": [], "/v1/traces": []}
        self.ends = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def content(self, path, name):
        """Returns what the lists resourceNAME[].scopeNAME[].NAME[] of all requests hold."""
        of = name.capitalize()
        found = []
        for body in self.bodies[path]:
            check(list(body) == [f"resource{of}"], f"{path}: {list(body)}")
            for resource in body[f"resource{of}"]:
                attributes = values(resource["resource"])
                check(attributes["service.name"] == "troupe" and attributes["host.name"], f"the resource is {attributes}")
                for scope in resource[f"scope{of}"]:
                    check(scope["scope"] == {"name": "troupe"}, f"the scope is {scope['scope']}")
                    found += scope[name]
        return found

    def spans(self, name=None):
        return [span for span in self.content("/v1/traces", "spans") if name in (None, span["name"])]

    def metric(self, name):
        """Returns the newest version of a metric."""
        return [metric for metric in self.content("/v1/metrics", "metrics") if metric["name"] == name][-1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        check(self.headers["Content-Type"] == "application/json", "the content type")
        self.server.bodies[self.path].append(body)
        if not self.server.answers:
            self.server.ends.wait()
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def value(held):
    """Returns an AnyValue of OTLP, and checks its form."""
    check(len(held) == 1, f"a value is {held}")
    kind, content = next(iter(held.items()))
    if kind == "arrayValue":
        return [value(one) for one in content["values"]]
    check(isinstance(content, {"stringValue": str, "intValue": str, "boolValue": bool, "doubleValue": (int, float)}[kind]), f"a value is {held}")
    return int(content) if kind == "intValue" else content


def values(of):
    return {one["key"]: value(one["value"]) for one in of["attributes"]}


def nanoseconds(text):
    check(isinstance(text, str) and re.fullmatch(r"1\d{18}", text), f"a time is {text!r}")
    return int(text)


def check_spans(collector):
    spans = collector.spans()
    ids = {}
    for span in spans:
        check(re.fullmatch(r"[0-9a-f]{32}", span["traceId"]) and re.fullmatch(r"[0-9a-f]{16}", span["spanId"]), f"ids of {span}")
        check(nanoseconds(span["startTimeUnixNano"]) <= nanoseconds(span["endTimeUnixNano"]), f"times of {span}")
        check(span["kind"] == 1, f"the kind of {span}")
        check(span["spanId"] not in ids, f"{span} comes twice")
        ids[span["spanId"]] = span
    check(len({span["traceId"] for span in spans}) == 1, "there is more than one trace")
    parents = {"attempt": "run", "recovery": "run", "save": "attempt", "evaluation": "attempt"}
    for span in spans:
        if span["name"] == "run":
            check("parentSpanId" not in span, f"a root with a parent: {span}")
            continue
        parent = ids[span["parentSpanId"]]
        check(parent["name"] == parents[span["name"]], f"{span} below {parent}")
        # A save may end when its attempt has ended.
        check(int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) + 10**9, f"{span} before {parent}")
    run, = collector.spans("run")
    check(values(run)["troupe.state"] == "stopped", f"the run: {run}")
    attempts = collector.spans("attempt")
    check([values(one)["troupe.attempt"] for one in attempts] == list(range(1, len(attempts) + 1)), f"the attempts: {attempts}")
    check(values(run)["troupe.attempts"] == len(attempts) >= 2, f"the run: {run}")
    failed = [one for one in attempts if one["status"].get("code") == 2]
    check(failed and failed[0]["status"]["message"], f"no attempt failed: {attempts}")
    for one in collector.spans("recovery"):
        told = values(one)
        check(told["troupe.from"] in ("memory", "checkpoint") and told["troupe.redone"] >= 0 and told["troupe.why"], f"a recovery: {told}")


def check_metrics(collector):
    for metric in collector.content("/v1/metrics", "metrics"):
        kind, = {"gauge", "sum", "histogram"} & set(metric)
        data = metric[kind]
        if kind != "gauge":
            check(data["aggregationTemporality"] == 2, f"{metric}")
        check(data.get("isMonotonic") == (True if kind == "sum" else None), f"{metric}")
        for point in data["dataPoints"]:
            check(values(point)["run"] == "r", f"{metric['name']}: {point}")
            nanoseconds(point["timeUnixNano"])
            if kind != "gauge":
                check(nanoseconds(point["startTimeUnixNano"]) <= int(point["timeUnixNano"]), f"{metric['name']}: {point}")
            if kind == "sum":
                check(re.fullmatch(r"\d+", point["asInt"]), f"{metric['name']}: {point}")
            if kind == "histogram":
                check(len(point["bucketCounts"]) == len(point["explicitBounds"]) + 1, f"{metric['name']}: {point}")
                check(sum(map(int, point["bucketCounts"])) == int(point["count"]), f"{metric['name']}: {point}")

    def count(name):
        return int(collector.metric("troupe.run." + name)["sum"]["dataPoints"][0]["asInt"])

    check(count("recoveries") == len(collector.spans("recovery")), "the count of recoveries")
    check(count("checkpoints") == len(collector.spans("save")), "the count of saves")
    check(count("steps_done") > 20, "the count of steps")
    waits = collector.metric("troupe.run.link_wait_seconds")["histogram"]["dataPoints"]
    check({(values(one)["from"], values(one)["to"]) for one in waits} <= {("alpha", "beta"), ("beta", "alpha")}, f"the waits: {waits}")


def run_test(cluster):
    collector = Collector()
    head = cluster.start_head("--otlp", collector.address)
    node = cluster.start_node("alpha")
    cluster.start_node("beta")
    cluster.run("submit", config, "--set", "name=r", "--set", "pipeline.stages=2", "--set", "train.steps=1000000",
                "--set", "train.eval_every=20", "--set", "checkpoint.every=20 steps")
    until(lambda: collector.spans("save") and collector.spans("evaluation"), "a save and an evaluation are told")
    until(lambda: collector.metric("troupe.run.link_wait_seconds"), "nodes wait for each other")
    os.kill(children(node.pid)[0], signal.SIGKILL)
    until(lambda: collector.spans("recovery"), "the recovery is told")
    head.send_signal(signal.SIGTERM)
    check(head.wait(timeout=60) == 0, "the head ends")
    check("otlp:" not in read("head.log"), "the head is content with the collector")
    check_spans(collector)
    check_metrics(collector)
    return collector


def run_with_hanging_collector(cluster):
    collector = Collector(answers=False)
    head = cluster.start_head("--otlp", collector.address)
    cluster.start_node("gamma")
    # Whether somebody takes what is told or not, a run is done.
    cluster.run("submit", config, "--set", "name=s", "--set", "train.steps=200", "--wait")
    until(lambda: collector.bodies["/v1/metrics"], "the collector was asked")
    head.send_signal(signal.SIGTERM)
    check(head.wait(timeout=60) == 0, "the head ends")
    collector.ends.set()
    said = re.findall(r"^otlp: (.*)$", read("head.log"), flags=re.M)
    check(len(said) == 2 and "did not answer in time" in said[0] and re.search(r"did not take \d+ spans and the last metrics", said[1]),
          f"the head says {said}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with Cluster(program) as cluster:
                told = run_test(cluster)
            if len(sys.argv) > 3:  # Keeps what was sent, for other readers.
                with open(sys.argv[3], "w") as file:
                    json.dump(told.bodies, file)
            with Cluster(program) as cluster:
                run_with_hanging_collector(cluster)
            print(f"{len(told.spans())} spans, {len(told.bodies['/v1/metrics'])} requests with metrics")
        except Failed as failed:
            sys.exit(f"otlp_test: {failed}")
        finally:
            os.chdir("/")
