"""Your own memory: whole sequences in while training, one row at a time while acting.

    python examples/custom_memory.py [--epochs 50]

`forward` and `step` must agree: what `step` returns after t rows of a sequence is row t of what
`forward` returns for the whole sequence.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
import torch
from torch import Tensor, nn

import amago
from amago.config import override
from amago.nets.memory.interface import Memory
from amago.nets.sequences import Sequences


class PeakMemory(Memory):
    """The current features, and the highest value that each has reached in this rollout."""

    def __init__(self, input_dim: int, *, context_length: int, horizon: int | None) -> None:
        super().__init__()
        self.output_dim = 128
        self.features = nn.Linear(input_dim, 64)
        self.norm = nn.LayerNorm(128)

    def forward(self, x: Tensor, time: Tensor, sequences: Sequences) -> Tensor:
        now = self.features(x)  # [M, 64]: the rows of all sequences, end to end
        peak = sequences.unpad(sequences.pad(now).cummax(1).values)  # side by side: [B, T, 64]
        return self.norm(torch.cat([now, peak], -1))

    def initial_state(self, num_lanes: int) -> Tensor:
        return torch.zeros(num_lanes, 64, device=self.features.weight.device)

    def select(self, state: Tensor, lanes: np.ndarray) -> Tensor:
        return state[lanes]  # of the lanes whose rollouts go on

    def step(self, x: Tensor, time: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        now = self.features(x)
        begins = (time == 0)[:, None]  # a rollout begins with an empty memory
        peak = torch.where(begins, now, torch.maximum(now, state))
        return self.norm(torch.cat([now, peak], -1)), peak


def main(epochs: int) -> None:
    config = override(
        amago.preset("t-maze"),
        {
            "env.kwargs": {"corridor": 10},
            "run.epochs": epochs,
            "run.updates_per_epoch": 50,
            "run.final_eval_episodes": 64,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, memory=PeakMemory).result
        print(f"return {result['return_mean']:.2f}; who forgets the cue earns .5 at best")

        policy = amago.load(folder, memory=PeakMemory)
        print(amago.evaluate(policy, config.env, episodes=8, seed=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--epochs", type=int, default=3, help="3 show that it runs, 50 learn (a minute)"
    )
    main(parser.parse_args().epochs)
