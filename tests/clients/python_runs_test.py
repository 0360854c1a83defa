"""Tests the reading of run folders and the installation of the client, without a head."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CLIENTS = Path(os.environ["TROUPE_CLIENTS"])
PROGRAM = os.environ["TROUPE_PROGRAM"]
sys.path[:0] = [str(CLIENTS), str(CLIENTS / "examples")]

import plot  # noqa: E402
import troupe  # noqa: E402
from troupe import Checkpoint, history, read_run  # noqa: E402

SMALL = """
name = "small"
seed = 3
[model]
kind = "mlp"
dims = [16, 32, 4]
[data]
train = "made:gaussians?dims=16&classes=4"
validate = "made:gaussians?dims=16&classes=4&stream=1"
[batch]
global = 16
micro = 4
[checkpoint]
every = "10 steps"
[train]
steps = 20
"""


class RunsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.path = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.path)

    def told(self, *events: dict[str, object], end: str = "\n") -> Path:
        """Writes a run's folder with these events."""
        folder = self.path / "runs" / "told"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text("\n".join(json.dumps(event) for event in events) + end)
        return folder

    def train(self, *more: str) -> None:
        subprocess.run([PROGRAM, "train", "small.toml", "-q", *more], check=True, timeout=60)

    def test_a_step_that_was_repeated_counts_once_as_it_was_last(self) -> None:
        def step(number: int, loss: float) -> dict[str, object]:
            return {"type": "step", "run": "told", "step": number, "loss": loss, "staleness": []}

        self.told(step(1, 5.0), step(2, 4.0), {"type": "eval", "run": "told", "step": 2, "loss": 4.5}, step(3, 3.0),
                  {"type": "run.recovered", "run": "told"}, {"type": "of.tomorrow"},
                  step(2, 4.25), {"type": "eval", "run": "told", "step": 2, "loss": 4.75},
                  {**step(3, 3.25), "grad_norm": 0.5})
        self.assertEqual(history("told"), {"step": [1, 2, 3], "loss": [5.0, 4.25, 3.25], "grad_norm": [None, None, 0.5]})
        run = read_run("told")
        self.assertEqual(run.evals, {"step": [2], "loss": [4.75]})
        self.assertEqual(run.history, history(self.path / "runs" / "told"))
        self.assertEqual(len(run.events), 9)
        self.assertEqual((run.config, run.lives, run.state), ({}, [], ""))

    def test_a_run_that_trains_and_resumes_is_read_whole(self) -> None:
        Path("small.toml").write_text(SMALL)
        self.train()
        shutil.rmtree("runs/small/checkpoints/step-000000000020")
        self.train("--resume")
        run = read_run("small")
        self.assertEqual(sum(event["type"] == "step" for event in run.events), 30)
        self.assertEqual(run.history["step"], list(range(1, 21)))
        self.assertEqual(run.evals["step"], [20])
        for column in ("loss", "grad_norm", "lr", "rate", "time", "seconds", "samples", "goodput", "memory"):
            self.assertNotIn(None, run.history[column], column)
        self.assertEqual((run.name, run.state, run.why), ("small", "done", ""))
        self.assertEqual([one.step for one in run.checkpoints], [10, 20])
        # A run's folder can be moved, for example to another machine.
        shutil.move("runs/small", "elsewhere")
        moved = read_run("elsewhere")
        self.assertEqual(moved.checkpoints[0],
                         Checkpoint(10, Path("elsewhere/checkpoints/step-000000000010"), run.checkpoints[0].weights))
        self.assertEqual(moved.history, run.history)

    def test_what_is_no_run_is_an_error_that_says_where(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, r"^nowhere/events.jsonl: No such file.*wanted the name of a run"):
            history("nowhere")
        folder = self.told({"type": "step", "step": 1, "loss": 2.0}, end='\n{"type": "st')
        self.assertEqual(history("told")["step"], [1])  # The run was killed while it wrote.
        for line in ("garbage", "[]", '{"step": 1}', '{"type": "step", "loss": 1}', '{"type": "step", "step": "1"}'):
            (folder / "events.jsonl").write_text('{"type": "warn"}\n' + line + "\n")
            with self.assertRaisesRegex(ValueError, r"events.jsonl:2: found .*wanted an event"):
                history("told")

    def test_the_plot_is_a_picture_or_says_what_to_install(self) -> None:
        self.told({"type": "step", "step": 1, "loss": 2.0, "lr": 0.1}, {"type": "step", "step": 2, "loss": 1.0, "lr": 0.1})
        ended = subprocess.run([sys.executable, plot.__file__, "loss.png", "told"], capture_output=True, text=True, timeout=60)
        if ended.returncode == 0:
            self.assertTrue(Path("loss.png").read_bytes().startswith(b"\x89PNG"))
        else:
            self.assertIn("install it with `apt install python3-matplotlib`", ended.stderr)


class PackageTest(unittest.TestCase):
    def test_its_version_is_that_of_the_program(self) -> None:
        said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(said.split()[:2], ["troupe", troupe.__version__])

    def test_it_installs_without_a_network_into_a_virtual_environment(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            shutil.copytree(CLIENTS, place / "source")
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", place / "venv"],
                           check=True)
            python = place / "venv" / "bin" / "python"
            subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps",
                            "--no-build-isolation", place / "source"], check=True, cwd=folder)
            said = subprocess.run(
                [python, "-I", "-c", "import troupe, pathlib; print(troupe.__version__, troupe.__file__,"
                 " (pathlib.Path(troupe.__file__).parent / 'py.typed').exists())"],
                check=True, capture_output=True, text=True, cwd=folder).stdout.split()
            self.assertEqual((said[0], said[2]), (troupe.__version__, "True"))
            self.assertTrue(said[1].startswith(str(place / "venv")), said[1])


if __name__ == "__main__":
    unittest.main()
