"""Update rate over context length: the comparison of the paper's Figure 29, on this machine.

    python -m amago.bench.context_length FOLDER

Three arrangements of the same agent: one Transformer for actor and critics, one GRU in its place,
and two Transformers, one for the actor and one for the critics (Figure 10, top right). Batches hold
the same number of transitions at every length, so that a point shows what length itself costs.
Writes rates.csv into the folder; the rows of other devices stay.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from amago.agent.agent import Agent
from amago.agent.update import Learner
from amago.bench.synthetic import Size, config_of, make_batch, spec_of
from amago.bench.timing import Effort, interleave
from amago.config import override
from amago.process import prepare_process

_LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
_ARRANGEMENTS: dict[str, dict[str, str]] = {
    "Transformer, shared": {},
    "GRU, shared": {"memory": "gru"},
    "Transformers, separate": {"agent.sequence_models": "separate"},
}
_FILE = "rates.csv"
_CPU = "2 CPU cores"
_COLUMNS = ("device", "arrangement", "context", "batch", "updates_per_second", "disturbed")
_SIZE = Size(128, 2, (128, 128, 128), 1, 1)
_TOKENS = 4096
"""Transitions per batch."""

_Row = dict[str, float | int | str]


def measure(lengths: Sequence[int], tokens: int, effort: Effort) -> list[_Row]:
    """Updates per second of every arrangement at every length."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _CPU
    rows: list[_Row] = []
    for length in lengths:
        size = replace(_SIZE, context_length=length, batch_size=max(1, tokens // length))
        batch = make_batch(size).to(device)
        learners = {}
        for arrangement, settings in _ARRANGEMENTS.items():
            torch.manual_seed(0)
            config = override(config_of(size), settings)
            agent = Agent(spec_of(size), config).to(device)
            learners[arrangement] = Learner(agent, config.agent, config.optim)
        steps = {name: partial(learner.step, batch) for name, learner in learners.items()}
        for arrangement, timing in interleave(steps, effort).items():
            rate = round(1.0 / timing.seconds, 4)
            cells = (name, arrangement, length, size.batch_size, rate, int(timing.disturbed))
            rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    return rows


def _write_rates(folder: Path, rows: Sequence[_Row]) -> None:
    """Add rows to rates.csv, in place of those of the same device."""
    path = folder / _FILE
    measured = {row["device"] for row in rows}
    others = [row for row in _read_rates(folder) if row["device"] not in measured]
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *rows])


def _read_rates(folder: Path) -> list[dict[str, str]]:
    """The rows of rates.csv; none if there is no file."""
    path = folder / _FILE
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main(folder: str) -> None:
    prepare_process(0)
    rows = measure(_LENGTHS, _TOKENS, Effort(rounds=3, max_rounds=5))
    _write_rates(Path(folder), rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
