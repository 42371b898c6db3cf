"""Do critics learn values that bootstrap? A chain of states, no actor, exact values beside it.

    python benchmarks/critic_chain.py [--critics scalar two_hot hl_gauss] [--rewards every|end]
    python benchmarks/critic_chain.py --follow

Every state of a chain of 100 leads to the next one; the second of two actions ends it with
probability .05. Rewards of 10 in `every` state or at the `end`; the policy is undecided. Critics
are taught as in an update of the recipe: target copies at .03, AdamW, 10 × loss, a clip of 1.
`bias` and `mean` are of the values at discount .98; `advantage` is the cosine between learned and
true differences of the two actions. `--follow`: instead, all states have one value, which grows by
one per cent an update from 10, as bootstrapping makes values grow; prints what critics say.
"""

from __future__ import annotations

import argparse
import copy
from typing import Literal

import torch
from torch import Tensor, nn

from amago.nets.critic import build_critics, build_popart
from amago.nets.distributions import FlooredCategorical
from amago.nets.settings import HeadSettings
from amago.types import ActionSpec

STATES, REWARD, FALL, ROWS = 100, 10.0, 0.05, 128
DISCOUNTS = (0.0, 0.5, 0.9, 0.98)
Kinds = Literal["scalar", "two_hot", "hl_gauss"]


class Taught:
    """Critics, their target copies, their scale and an optimiser."""

    def __init__(self, kind: Kinds, updates: int) -> None:
        torch.manual_seed(0)
        settings = HeadSettings(
            hidden=(128, 128), num_critics=2, layer_norm=True, critic=kind, popart_rate=0.005
        )
        self.critics = build_critics(16, ActionSpec("discrete", 2), DISCOUNTS, settings)
        self.target = copy.deepcopy(self.critics).requires_grad_(False)
        self.popart = build_popart(len(DISCOUNTS), settings)
        self.optimizer = torch.optim.AdamW(self.critics.parameters(), lr=1e-3, betas=(0.9, 0.95))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda u: min(1.0, (u + 1) / 100) * (1.0 - 0.95 * u / updates)
        )

    def teach(self, states: Tensor, action: Tensor, target: Tensor) -> None:
        move = self.popart.update(self.critics.scaled(target))
        self.critics.rescale(*move)
        self.target.rescale(*move)
        loss = self.critics(states, self.popart).at(action).loss(target).mean()
        self.optimizer.zero_grad()
        (10.0 * loss).backward()
        nn.utils.clip_grad_norm_(self.critics.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        with torch.no_grad():
            online: list[Tensor] = list(self.critics.parameters())
            torch._foreach_lerp_(list(self.target.parameters()), online, 0.03)

    @torch.no_grad()
    def following(self, states: Tensor) -> Tensor:
        """V of the undecided policy, by the target copies [M, G]."""
        policy = FlooredCategorical(torch.zeros(len(states), len(DISCOUNTS), 2))
        value: Tensor = self.target(states, self.popart).under(policy).raw
        return value.amin(0)

    @torch.no_grad()
    def table(self, states: Tensor) -> Tensor:
        """Q of both actions at the longest discount [M, 2]."""
        values = self.critics(states, self.popart)
        each = [values.at(torch.full((len(states),), action)).raw for action in range(2)]
        return torch.stack([raw.mean(0)[:, -1] for raw in each], -1)


def exact(reward: Tensor) -> Tensor:
    """Q at the longest discount [states, 2]."""
    table, following = torch.zeros(STATES, 2), torch.zeros(())
    for state in reversed(range(STATES)):
        onward = torch.tensor([1.0, 1.0 - FALL]) * following
        table[state] = reward[state] + DISCOUNTS[-1] * onward
        following = table[state].mean()
    return table


def chain(kind: Kinds, rewards: str, updates: int) -> None:
    angle = torch.linspace(0, torch.pi, STATES)[:, None] * torch.arange(1, 9)
    features = torch.cat((angle.sin(), angle.cos()), -1)
    reward = torch.full((STATES,), REWARD)
    if rewards == "end":
        reward[:-1] = 0.0
    want, taught, discounts = exact(reward), Taught(kind, updates), torch.tensor(DISCOUNTS)
    for update in range(1, updates + 1):
        state, action = torch.randint(0, STATES, (ROWS,)), torch.randint(0, 2, (ROWS,))
        ended = (torch.rand(ROWS) < FALL * action) | (state == STATES - 1)
        value = taught.following(features[(state + 1).clamp(max=STATES - 1)])
        target = reward[state, None] + discounts * (~ended)[:, None] * value
        taught.teach(features[state], action, target)
        if update in (updates // 4, updates // 2, updates):
            got = taught.table(features)
            gap, true = got[:, 0] - got[:, 1], want[:, 0] - want[:, 1]
            cosine = float(torch.cosine_similarity(gap, true, 0))
            bias = float((got - want).mean())
            print(
                f"{kind:9} update {update:5} mean {float(want.mean()):7.2f} bias {bias:8.2f} "
                f"advantage {cosine:5.2f}"
            )


def follow(kind: Kinds) -> None:
    taught, states = Taught(kind, 10_000), torch.randn(32, 16)
    action, said = torch.zeros(32, dtype=torch.int64), []
    for update in range(1, 401):
        value = 10.0 * 1.01**update
        taught.teach(states, action, torch.full((32, len(DISCOUNTS)), value))
        if update % 100 == 0:
            said.append(f"{float(taught.table(states)[:, 0].mean()):.1f} of {value:.1f}")
    print(f"{kind:9} {', '.join(said)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--critics", nargs="+", default=["scalar", "two_hot", "hl_gauss"])
    parser.add_argument("--rewards", choices=["every", "end"], default="every")
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--follow", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for kind in arguments.critics:
        if arguments.follow:
            follow(kind)
        else:
            chain(kind, arguments.rewards, arguments.updates)


if __name__ == "__main__":
    main()
