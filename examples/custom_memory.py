"""Your own memory: a whole window in while training, one row at a time while acting.

    python examples/custom_memory.py [--epochs 40]

The two faces, `forward` and `step`, must agree: sharing one line between them, as
`_blend` does here, is the easiest way to be sure.
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from torch import Tensor, nn

import amago
from amago.config import override
from amago.nets.memory.interface import Memory


class FadingMemory(Memory):
    """Moving averages of the past, from the present alone to a thousand steps."""

    def __init__(self, input_dim: int, *, context_length: int, horizon: int | None) -> None:
        super().__init__()
        self.output_dim = 64
        self.project = nn.Linear(input_dim, 64)
        self.norm = nn.LayerNorm(64)
        self.register_buffer("rate", torch.logspace(0, -3, 64))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:  # [B, T, E], [B, T] → [B, T, 64]
        states = [self.initial_state(len(x))]
        for row in x.unbind(1):
            states.append(self._blend(row, states[-1]))
        return self.norm(torch.stack(states[1:], 1))

    def initial_state(self, num_lanes: int) -> Tensor:
        return self.rate.new_zeros(num_lanes, 64)

    def step(self, x: Tensor, time: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.where((time == 0)[:, None].to(x.device), 0.0, state)  # a rollout begins
        state = self._blend(x, state)
        return self.norm(state), state

    def _blend(self, x: Tensor, state: Tensor) -> Tensor:
        return torch.lerp(state, self.project(x), self.rate)


def main(epochs: int) -> None:
    config = override(
        amago.preset("t-maze"),
        {
            "env.kwargs": {"corridor": 10},
            "run.epochs": epochs,
            "run.updates_per_epoch": 20,
            "run.final_eval_episodes": 64,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, memory=FadingMemory)
        print(f"return {result['return_mean']:.2f}; who forgets the cue earns .5 at best")

        policy = amago.load(folder, memory=FadingMemory)
        print(amago.evaluate(policy, config.env, episodes=8, seed=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4, help="4 show that it runs, 40 learn")
    main(parser.parse_args().epochs)
