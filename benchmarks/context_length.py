"""Update rate over context length: the comparison of the paper's Figure 29, on this machine.

    python benchmarks/context_length.py --out FOLDER [--tokens 4096] [--threads 2]

Three arrangements of the same agent: one Transformer for actor and critics, one GRU in its place,
and two Transformers, one for the actor and one for the critics (Figure 10, top right). Batches hold
the same number of transitions at every length, so that a point shows what length itself costs.
Writes a table, a CSV file and a plot.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from amago.agent.agent import Agent
from amago.agent.update import Learner
from amago.bench.synthetic import Size, config_of, make_batch, spec_of
from amago.bench.timing import Effort, interleave
from amago.config import override
from amago.training.process import prepare_process

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
ARRANGEMENTS = {
    "Transformer, shared": {},
    "GRU, shared": {"memory": "gru"},
    "Transformers, separate": {"agent.sequence_models": "separate"},
}
SIZE = Size(128, 2, (128, 128, 128), 1, 1)


def measure(tokens: int, effort: Effort) -> list[dict[str, float | int | str]]:
    rows: list[dict[str, float | int | str]] = []
    for length in LENGTHS:
        size = replace(SIZE, context_length=length, batch_size=max(1, tokens // length))
        batch = make_batch(size)
        learners = {}
        for name, settings in ARRANGEMENTS.items():
            torch.manual_seed(0)
            config = override(config_of(size), settings)
            learners[name] = Learner(Agent(spec_of(size), config), config.agent, config.optim)
        steps = {name: partial(learner.step, batch) for name, learner in learners.items()}
        timings = interleave(steps, effort)
        for name, timing in timings.items():
            rows.append(
                {
                    "arrangement": name,
                    "context": length,
                    "batch": size.batch_size,
                    "updates_per_second": round(1.0 / timing.seconds, 4),
                    "disturbed": int(timing.disturbed),
                }
            )
            print(
                f"{length:>6} × {size.batch_size:<4} {name:<24} {1 / timing.seconds:8.2f} updates/s"
            )
    return rows


def plot(rows: list[dict[str, float | int | str]], path: Path, tokens: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name in ARRANGEMENTS:
        chosen = [row for row in rows if row["arrangement"] == name]
        axes.plot(
            [row["context"] for row in chosen],
            [row["updates_per_second"] for row in chosen],
            marker="o",
            label=name,
        )
    axes.set(
        xscale="log", yscale="log", xlabel="context length",
        ylabel=f"updates per second ({tokens:,} transitions each)",
    )  # fmt: skip
    axes.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS], fontsize=8)
    axes.set_yticks([0.5, 1, 2, 3], [".5", "1", "2", "3"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the CSV and the plot")
    parser.add_argument("--tokens", type=int, default=4096, help="transitions per batch")
    parser.add_argument("--threads", type=int, default=0, help="torch threads (0: its choice)")
    options = parser.parse_args()
    prepare_process(options.threads)
    rows = measure(options.tokens, Effort(rounds=3, max_rounds=5))
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "rates.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    plot(rows, options.out / "rates.png", options.tokens)
    print(f"written: {options.out}/rates.csv, rates.png")


if __name__ == "__main__":
    main()
