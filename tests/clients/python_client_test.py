"""Tests the Python client with a head and nodes of its own for each test."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

CLIENTS = Path(os.environ["TROUPE_CLIENTS"])
PROGRAM = os.environ["TROUPE_PROGRAM"]
sys.path[:0] = [str(CLIENTS), str(CLIENTS / "examples")]

import exchanges  # noqa: E402
import plateau  # noqa: E402
import sweep  # noqa: E402
import track  # noqa: E402
from troupe import Client, HeadError, Keys, NoHead, default_head, history, read_run  # noqa: E402
from troupe.configuration import configuration  # noqa: E402
from troupe.wire import decode, encode  # noqa: E402

SMALL = {
    "seed": 3,
    "model": {"kind": "mlp", "dims": [16, 32, 4]},
    "data": {"train": "made:gaussians?dims=16&classes=4"},
    "batch": {"global": 16, "micro": 4},
    "optimizer": {"kind": "sgd", "lr": 0.05},
    "pipeline": {"stages": 2},
    "checkpoint": {"every": "20 steps"},
    "precision": {"compute": "fp32"},
    "train": {"steps": 40},
}
SECONDS = 30


class Place:
    """A folder and the processes that were started in it, which end with it."""

    def __enter__(self) -> Place:
        self._stack = contextlib.ExitStack()
        self.path = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.path)}
        return self

    def __exit__(self, *what: object) -> None:
        self._stack.close()

    def run(self, *words: str) -> str:
        ended = subprocess.run(
            [PROGRAM, *words], cwd=self.path, env=self.environment, timeout=SECONDS,
            capture_output=True, text=True, check=True,
        )
        return ended.stdout

    def start(self, *words: str, until: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PROGRAM, *words], cwd=self.path, env=self.environment, text=True,
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )
        self._stack.callback(self._end, process)
        assert process.stderr
        said = ""
        for line in process.stderr:  # The stream ends with the process.
            said += line
            if until in line:
                return process
        raise AssertionError(f"troupe {' '.join(words)} has said: {said}")

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def head(self, *more: str) -> str:
        """Starts a head and returns its address."""
        self.start("head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0", *more, until="troupe submit")
        return (self.path / "troupe" / "head").read_text().strip()

    def node(self, head: str, name: str, *more: str) -> None:
        self.start("node", "--head", head, "--name", name, "--cores", "1", *more, until="joined")

    @staticmethod
    def wait_until(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"it did not come within {SECONDS} s")

    def weights(self, run: str) -> str:
        """Returns the digest of the weights that the run saved last."""
        lines = (self.path / "runs" / run / "events.jsonl").read_text().splitlines()
        return [event["weights"] for event in map(json.loads, lines) if event["type"] == "checkpoint.saved"][-1]

    def trained(self, name: str, *settings: str) -> str:
        """Returns the digest of the weights of a run in one process."""
        (self.path / "small.json").write_text(json.dumps({**SMALL, "name": name}))
        self.run("train", "small.json", "-q", *(word for text in settings for word in ("--set", text)))
        return self.weights(name)


class ClusterTest(unittest.TestCase):
    """Tests with a head, two nodes and a client."""

    def setUp(self) -> None:
        self.place = self.enterContext(Place())
        self.address = self.place.head("--allow-chaos")
        for name in ("alpha", "beta"):
            self.place.node(self.address, name)
        self.client = self.enterContext(Client(self.address))

    def test_events_are_those_of_the_file_and_each_comes_once(self) -> None:
        run = self.client.submit(SMALL, name="one")
        told = list(self.client.events(run))
        lines = (self.place.path / "runs" / "one" / "events.jsonl").read_text().splitlines()
        self.assertEqual(told, [json.loads(line) for line in lines])
        self.assertEqual([event["step"] for event in told if event["type"] == "step"], list(range(1, 41)))
        self.assertEqual(self.client.status(run)["state"], "done")
        self.assertEqual([one["name"] for one in self.client.runs()], ["one"])
        self.assertEqual(self.place.weights("one"), self.place.trained("plain"))

    def test_what_the_head_refuses_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(HeadError, "no run is called 'nobody'; `troupe runs` lists"):
            self.client.stop("nobody")
        with self.assertRaisesRegex(HeadError, "unknown key 'batch.gobal'"):
            self.client.submit(SMALL, name="bad", batch__gobal=3)
        with self.assertRaisesRegex(HeadError, "is not a message type that this head supports"):
            self.client.ask("of.tomorrow")
        with self.assertRaisesRegex(HeadError, "no node is called 'gamma'"):
            self.client.drain("gamma")

    def test_a_refusal_has_a_code_and_says_of_what(self) -> None:
        def refusal(ask: Callable[..., object], *words: object, **settings: object) -> tuple[str, str]:
            with self.assertRaises(HeadError) as raised:
                ask(*words, **settings)
            self.assertIn(raised.exception.hint, str(raised.exception))
            return raised.exception.code, raised.exception.path

        self.assertEqual(refusal(self.client.stop, "nobody"), ("not_found", "run"))
        self.assertEqual(refusal(self.client.cordon, "gamma"), ("not_found", "node"))
        self.assertEqual(refusal(self.client.chaos, "kill", "gamma"), ("not_found", "target"))
        # Names of nodes and of the head, and names that nobody knows.
        for type in ("prepared", "drain", "forget", "node.blah", "of.tomorrow"):
            self.assertEqual(refusal(self.client.ask, type), ("unsupported", "type"), type)
        self.assertEqual(refusal(self.client.submit, SMALL, batch__gobal=3), ("invalid", "batch.gobal"))
        with self.assertRaises(HeadError) as raised:
            self.client.validate(SMALL, batch__gobal=3)
        self.assertTrue(raised.exception.hint.startswith("did you mean 'batch.global'?"))
        self.assertEqual(refusal(self.client.submit, SMALL, data__train="nowhere.bin"), ("invalid", "data.train"))
        self.assertEqual(refusal(self.client.validate, SMALL, data__train="nowhere.bin"), ("invalid", "data.train"))
        self.assertEqual(refusal(self.client.simulate, SMALL, hours=-1), ("invalid", "hours"))
        run = self.client.submit(SMALL, name="long", train__steps=100_000)
        self.assertEqual(refusal(self.client.submit, SMALL, name="long"), ("conflict", "name"))
        self.assertEqual(refusal(self.client.set, run, "seed", 4), ("invalid", "seed"))
        self.assertEqual(refusal(self.client.set, run, "optimizer.lr", 0.1, after=-1), ("invalid", "from"))
        self.client.stop(run, now=True)
        self.client.wait(run)
        self.assertEqual(refusal(self.client.set, run, "optimizer.lr", 0.1), ("conflict", "run"))
        self.assertEqual(refusal(self.client.checkpoint, run), ("conflict", "run"))

    def test_stacks_show_where_the_threads_of_a_node_are(self) -> None:
        (node,) = self.client.stacks(node="alpha")
        self.assertEqual((node["kind"], node["name"]), ("node", "alpha"))
        self.assertIn("heart", [thread["name"] for thread in node["threads"]])
        with self.assertRaises(HeadError) as raised:
            self.client.stacks(node="gamma")
        self.assertEqual(raised.exception.code, "not_found")

    def test_a_configuration_is_judged_planned_and_simulated_for_the_nodes_that_are_there(self) -> None:
        self.assertEqual(self.client.validate(SMALL), "")
        with self.assertRaisesRegex(HeadError, "batch.gobal"):
            self.client.validate(SMALL, batch__gobal=3)
        plan = self.client.plan(SMALL, name="thought")
        self.assertEqual(len(plan["stages"]), 2)
        for name in ("alpha", "beta"):
            self.assertIn(name, plan["table"])
        played = self.client.simulate(SMALL, hours=0.005, fail_every=3, train__steps=10**9)
        self.assertAlmostEqual(played["seconds"], 18, delta=1)
        self.assertGreater(played["losses"], 0)
        self.assertLess(0, played["goodput"])
        with self.assertRaisesRegex(HeadError, "steps; wanted at most 1"):
            self.client.simulate(SMALL, hours=1000)
        with self.assertRaisesRegex(HeadError, "sim.request.hours: wanted a number from 0"):
            self.client.simulate(SMALL, hours=-1)
        with self.assertRaisesRegex(HeadError, "sim.request.config: is missing"):
            self.client.ask("sim.request")
        self.assertEqual(self.client.runs(), [])

    def test_a_rate_that_is_set_is_that_of_a_configuration(self) -> None:
        run = self.client.submit(SMALL, name="set", train__steps=200)
        with self.assertRaisesRegex(HeadError, "seed cannot be changed while the run is active"):
            self.client.set(run, "seed", 4)
        after = self.client.set(run, "optimizer.lr", 0.01)
        rates = {event["step"]: event["lr"] for event in self.client.events(run) if event["type"] == "step"}
        self.assertEqual(self.client.status(run)["state"], "done")
        self.assertEqual(rates, {step: 0.05 if step <= after else 0.01 for step in range(1, 201)})
        planned = self.place.trained("planned", "train.steps=200", f"optimizer.changes=0.01 from {after}")
        self.assertEqual(self.place.weights("set"), planned)
        # The configuration in its folder repeats the run, including the rate that was set.
        run_of_head = read_run(self.place.path / "runs" / "set")
        self.assertEqual(run_of_head.config["optimizer"]["changes"], f"0.01 from {after}")
        self.assertEqual([life["command"][1] for life in run_of_head.lives], ["head"])
        self.place.run("train", "runs/set/config.toml", "-q")
        self.assertEqual(self.place.weights("set"), planned)

    def test_a_run_is_paused_saved_stopped_and_resumed(self) -> None:
        run = self.client.submit(SMALL, name="halting", train__steps=2000)
        self.client.pause(run)
        saved = self.client.checkpoint(run)
        self.assertEqual(self.client.status(run)["state"], "paused")
        told = list(self.client.events(run, follow=False))
        self.assertIn(saved, [event.get("step") for event in told if event["type"] == "checkpoint.saved"] + [0])
        self.client.resume(run)
        self.client.stop(run)
        self.assertEqual(self.client.wait(run)["state"], "stopped")
        again = self.client.submit(SMALL, name="halting", resume=True, train__steps=2000)
        self.client.stop(again, now=True)
        self.assertEqual(self.client.wait(again)["state"], "stopped")

    def test_a_run_that_has_ended_is_extended(self) -> None:
        run = self.client.submit(SMALL, name="longer", train__steps=4)
        self.assertEqual(self.client.wait(run)["state"], "done")
        again = self.client.submit(SMALL, name="longer", resume=True, extend=3)
        self.assertEqual(self.client.wait(again)["state"], "done")
        self.assertEqual(self.client.status(again)["step"], 7)
        with self.assertRaises(HeadError) as refused:
            self.client.submit(SMALL, name="longer", extend=3)
        self.assertIn("without resume", str(refused.exception))

    def test_a_node_that_is_killed_and_one_that_is_drained_change_nothing(self) -> None:
        self.place.node(self.address, "gamma")
        run = self.client.submit(SMALL, name="stormy", train__steps=400, elastic__nodes="2")
        due = [50, 150]  # A repeated step is reported again.
        for event in self.client.events(run):
            if not due or event["type"] != "step" or event["step"] < due[0]:
                continue
            if due.pop(0) == 50:
                self.client.chaos("kill", "alpha")
            else:
                self.place.wait_until(lambda: len(self.client.nodes()) == 3)  # Its daemon has restarted it.
                self.client.drain("beta")
                with self.assertRaisesRegex(HeadError, "wants 2 nodes at least"):
                    self.client.drain("gamma")
        self.assertEqual(self.client.status(run)["state"], "done")
        folder = self.place.path / "runs" / "stormy"
        self.assertEqual(history(folder)["step"], list(range(1, 401)))
        self.assertEqual(read_run(folder).state, "done")
        told = [event["type"] for event in self.client.events(follow=False)]
        self.assertEqual(told.count("node.lost"), 1)
        self.assertIn("chaos", told)
        self.assertEqual({node["name"] for node in self.client.nodes()}, {"alpha", "beta", "gamma"})
        self.assertEqual(self.place.weights("stormy"), self.place.trained("calm", "train.steps=400"))

    def test_the_examples_do_what_they_say(self) -> None:
        config = self.place.path / "small.json"
        config.write_text(json.dumps(SMALL))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            losses = sweep.sweep(self.client, str(config), [0.001, 0.05], train__steps=30)
            changes = plateau.train(self.client, str(config), patience=5, name="plateau", train__steps=300, optimizer__lr=1e-5)
            made = exchanges.compare(self.client, str(config), train__steps=10, parallel__groups=2)
        self.assertLess(losses[0.05], losses[0.001])
        self.assertGreater(len(changes), 0)
        # The last change for a step counts.
        text = ", ".join(f"{rate!r} from {step}" for step, rate in dict(changes).items())
        again = self.place.trained("again", "train.steps=300", "optimizer.lr=1e-5", f"optimizer.changes={text}")
        self.assertEqual(self.place.weights("plateau"), again)
        self.assertEqual(len(set().union(*made.values())), 1, said.getvalue())
        self.assertEqual(set(made), {"all_to_all", "server"}, said.getvalue())


    def test_trackers_get_every_step_and_evaluation(self) -> None:
        run = self.client.submit(SMALL, name="told", data__validate="made:gaussians?dims=16&classes=4&stream=1", train__eval_every=20)
        # Stands in for the libraries of other people, which Debian does not have.
        wandb, mlflow = mock.MagicMock(), mock.MagicMock()
        with mock.patch.dict(sys.modules, {"wandb": wandb, "mlflow": mlflow}):
            self.assertEqual(track.to_wandb(self.client, run), "done")
            self.assertEqual(track.to_mlflow(self.client, run), "done")
        steps = list(self.client.events(run))
        losses = [(event["step"], event["loss"]) for event in steps if event["type"] == "step"]
        evaluated = [(event["step"], event["loss"]) for event in steps if event["type"] == "eval"]
        self.assertEqual([step for step, _ in losses], list(range(1, 41)))
        self.assertEqual([step for step, _ in evaluated], [20, 40])
        logged = [call.args[0] for call in wandb.init.return_value.log.call_args_list]
        self.assertEqual([(told["step"], told["train/loss"]) for told in logged if "train/loss" in told], losses)
        self.assertEqual([(told["step"], told["validation/loss"]) for told in logged if "validation/loss" in told], evaluated)
        wandb.init.return_value.finish.assert_called_once_with(exit_code=0)
        metrics = [(call.kwargs["step"], call.args[0]) for call in mlflow.log_metrics.call_args_list]
        self.assertEqual([(step, told["train/loss"]) for step, told in metrics if "train/loss" in told], losses)
        self.assertEqual([(step, told["validation/loss"]) for step, told in metrics if "validation/loss" in told], evaluated)
        mlflow.end_run.assert_called_once_with("FINISHED")


class OtherTest(unittest.TestCase):
    def test_keys_are_asked_for(self) -> None:
        with Place() as place:
            lines = {name: place.run("keys", "new", name, "--roles", roles).splitlines()[-1]
                     for name, roles in (("head", "node"), ("me", "operator"), ("worker", "node"), ("stranger", "operator"))}
            (place.path / "hosts.allow").write_text(lines["me"] + "\n" + lines["worker"] + "\n")
            (place.path / "hosts.allow").chmod(0o600)
            address = place.head("--keys", "head.key", "--allow", "hosts.allow")
            public = re.search(r"^public (.*)$", (place.path / "head.key").read_text(), re.M).group(1)
            with Client(address, Keys.read(place.path / "me.key", public)) as client:
                self.assertEqual(client.runs(), [])
            stranger, node = (Keys.read(place.path / f"{name}.key", public) for name in ("stranger", "worker"))
            misled = Keys.read(place.path / "me.key", stranger.public)
            with self.assertRaisesRegex(HeadError, "as those of a node, which may not send requests") as raised:
                Client(address, node)
            self.assertEqual(raised.exception.code, "forbidden")
            # Each cause is reported before an answer could come.
            for keys, cause in ((None, "it wants keys"), (stranger, "it does not know this key"),
                                (misled, "its key is not the head key that was given")):
                with self.assertRaisesRegex(NoHead, f"does not let this client in: {cause}"):
                    Client(address, keys, patience=SECONDS)
        with Place() as place, self.assertRaisesRegex(NoHead, "does not let this client in: .*it takes no keys"):
            Client(place.head(), stranger, patience=SECONDS)

    def test_an_allowed_drill_is_asked_for(self) -> None:
        with Place() as place, Client(place.head()) as client:
            with self.assertRaisesRegex(HeadError, "start it with `troupe head --allow-chaos`"):
                client.chaos("kill", "anybody")

    def test_no_head_is_said_so(self) -> None:
        with self.assertRaisesRegex(NoHead, "tcp://127.0.0.1:1 has not answered 'hello' within 0.2 s; nobody listens there"):
            Client("127.0.0.1:1", patience=0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:  # Accepts connections and sends nothing.
            with self.assertRaisesRegex(NoHead, "a connection is made there, but what answers is no head"):
                Client(f"127.0.0.1:{silent.getsockname()[1]}", patience=0.2)

    def test_the_last_head_of_this_machine_is_known(self) -> None:
        with Place() as place:
            address = place.head()
            before = os.environ.get("XDG_STATE_HOME")
            os.environ["XDG_STATE_HOME"] = str(place.path)
            try:
                self.assertEqual(default_head(), address)
            finally:
                os.environ.pop("XDG_STATE_HOME") if before is None else os.environ.update(XDG_STATE_HOME=before)

    def test_a_configuration_extends_another_as_in_the_program(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "base.toml").write_text('seed = 1\n[model]\nkind = "mlp"\ndims = [1, 2]\n')
            (path / "my run.toml").write_text('extends = "base.toml"\n[model]\ndims = [3]\n')
            self.assertEqual(
                configuration(path / "my run.toml", {"train.steps": 5, "optimizer__lr": 1e-3}),
                {"seed": 1, "name": "my-run", "model": {"kind": "mlp", "dims": [3]},
                 "train": {"steps": 5}, "optimizer": {"lr": 1e-3}},
            )

    def test_what_is_no_message_is_refused(self) -> None:
        good = encode("run.get", 7, {"run": "one"})
        self.assertEqual(decode(good).body, {"run": "one"})
        for bad in ([], good[:2], [b"x" * 16, *good[1:]], [good[0], good[1], good[2] + b"x"],
                    [good[0], good[1], b"\xc1" * len(good[2])]):
            with self.assertRaises(HeadError):
                decode(bad)


if __name__ == "__main__":
    unittest.main()
