"""How clearly do the critics tell actions apart, and does the actor follow them?

    python benchmarks/actor_follows.py RUN [--rows 5000]

Reads a batch of the run's replay and prints a row per discount, for discrete actions. All values
are in units of the spread of returns (PopArt's scale). `advantage`: root mean square of Q - V over
the policy's own actions. `noise`: how far the critics disagree about differences between actions.
`gap`: how much the best action is better than the policy's mixture. `follows`: share of rows in
which the actor's likeliest action is the critics' best. An advantage near the noise means that the
critics do not know yet; a large gap with a low `follows` means that they do and the actor does not.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from torch import Tensor

from amago.agent.agent import resolve_context_length
from amago.agent.make import make_agent
from amago.agent.transitions import Transitions
from amago.nets.critic import _DiscreteValues
from amago.nets.distributions import FlooredCategorical, entropy
from amago.replay.reader import TrajectoryReader
from amago.replay.sampler import Sampler
from amago.saved.source import find_source


def read(run: Path, rows: int) -> Transitions:
    """A batch of the replay as the run's latest agent sees it, without relabeling."""
    source = find_source(run)
    config = source.config
    agent = make_agent(config)
    source.fill(agent)
    agent.eval()
    context = resolve_context_length(config, agent.spec)
    with TrajectoryReader(run / "replay") as store, torch.no_grad():
        sampler = Sampler(store, config.replay.batch_size, context, seed=0, batch_rows=rows)
        batch = next(iter(sampler.batches(0, 1, 1)))
        return Transitions(agent, batch, config.agent)


def describe(table: Tensor, probs: Tensor) -> dict[str, float]:
    """Numbers of one discount, from values [C, M, A] and probabilities [M, A]."""
    value = table.mean(0)
    expected = (value * probs).sum(-1, keepdim=True)
    advantage = value - expected
    among = table - table.mean(-1, keepdim=True)
    share = entropy(probs) / math.log(probs.shape[-1])
    return {
        "spread": float(value.std()),
        "advantage": float((probs * advantage.square()).sum(-1).mean().sqrt()),
        "noise": float((among - among.mean(0)).square().mean().sqrt()),
        "gap": float((value.amax(-1) - expected[:, 0]).mean()),
        "entropy": float(share.mean()),
        "follows": float((value.argmax(-1) == probs.argmax(-1)).float().mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, default=5000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transitions = read(arguments.run, arguments.rows)
    with torch.no_grad():
        values, policy = transitions.values, transitions.policy
    if not isinstance(values, _DiscreteValues) or not isinstance(policy, FlooredCategorical):
        raise SystemExit("expected a run with discrete actions and scalar critics")
    discounts = transitions.agent.discount_values
    for index, discount in enumerate(discounts):
        found = describe(values.table[:, :, index], policy.probs[:, index])
        if index == 0:
            print(f"{'discount':>9}" + "".join(f"{name:>11}" for name in found))
        print(f"{discount:9.4f}" + "".join(f"{number:11.3f}" for number in found.values()))


if __name__ == "__main__":
    main()
