"""Your own timestep encoder: one row of experience in, one vector out.

    python examples/custom_encoder.py [--epochs N]

A run made with your own class needs it again, as in the last lines: a run folder holds
weights and settings, never code.
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from torch import Tensor, nn

import amago
from amago.config import override
from amago.nets.action import previous_action
from amago.nets.timestep import TimestepEncoder
from amago.types import Batch, EnvSpec


class FourierEncoder(TimestepEncoder):
    """Positions as waves of several lengths, so that small distances stand out."""

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.action, self.output_dim = spec.action, 64
        self.register_buffer("frequencies", 2.0 ** torch.arange(6))
        num_waves = 2 * 6 * spec.obs["observation"].shape[0]
        self.net = nn.Sequential(
            nn.Linear(num_waves + spec.action.size + 2, 64), nn.LeakyReLU(), nn.LayerNorm(64)
        )

    def forward(self, batch: Batch) -> Tensor:
        angles = batch.obs["observation"][:, :, None] * self.frequencies  # [M, 2, 6]
        waves = torch.cat([angles.sin(), angles.cos()], -1).flatten(1)
        rest = torch.stack([batch.prev_reward, batch.first.float()], -1)
        return self.net(torch.cat([waves, previous_action(batch, self.action), rest], -1))


def main(epochs: int) -> None:
    config = override(
        amago.preset("wind"),
        {
            "env.kwargs": {"horizon": 40},
            "env.num_lanes": 8,
            "replay.batch_size": 8,
            "run.epochs": epochs,
            "run.updates_per_epoch": 5,
            "run.eval_episodes": 16,
            "run.final_eval_episodes": 16,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, encoder=FourierEncoder).result
        print(f"return {result['return_mean']:.2f}, at random {result['random_return_mean']:.2f}")

        policy = amago.load(folder, encoder=FourierEncoder)
        print(amago.evaluate(policy, config.env, episodes=8, seed=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--epochs", type=int, default=3, help="3 show that it runs; learning takes hundreds"
    )
    main(parser.parse_args().epochs)
