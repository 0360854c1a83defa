#!/usr/bin/env python3
"""Draws the loss and the learning rate of runs into a PNG. It needs no head. It needs matplotlib:
`apt install python3-matplotlib`, or `pip install matplotlib` in a virtual environment.

    python3 plot.py loss.png quickstart another-run
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from troupe import read_run


def plot(picture: str, runs: Sequence[str]) -> None:
    """Writes the picture. Raises ImportError if there is no matplotlib."""
    import matplotlib

    matplotlib.use("Agg")  # Draws into a file, without a window.
    from matplotlib import pyplot

    figure, (losses, rates) = pyplot.subplots(
        2, 1, sharex=True, figsize=(8, 6), height_ratios=[3, 1], layout="constrained"
    )
    for name in runs:
        run = read_run(name)
        (line,) = losses.plot(run.history["step"], run.history["loss"], label=f"{run.name} ({run.state})")
        if run.evals["step"]:
            losses.plot(run.evals["step"], run.evals["loss"], "o", color=line.get_color(), label="its validation")
        rates.plot(run.history["step"], run.history["lr"], color=line.get_color())
    losses.set_ylabel("loss")
    losses.legend()
    rates.set_ylabel("lr")
    rates.set_xlabel("step")
    figure.savefig(picture, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        plot(sys.argv[1], sys.argv[2:])
    except ImportError:
        sys.exit("plot.py: found no matplotlib; install it with `apt install python3-matplotlib`,"
                 " or in a virtual environment with `pip install matplotlib`")
    except (OSError, ValueError) as error:
        sys.exit(f"plot.py: {error}")
