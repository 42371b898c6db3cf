"""Who acts better: the actor, its critics, or both together?

    python benchmarks/critics_act.py RUN [--rollouts 192]

Plays the same new worlds with the actor, with a softmax of factor · Q of the acting discount, and
with the actor's logits plus factor · Q. Discrete actions and scalar critics.
"""

from __future__ import annotations

import numpy as np
import torch
from playing import parse, settings_of
from torch import Tensor

from amago.agent.agent import Agent
from amago.agent.make import make_agent
from amago.evaluation.play import make_lanes, make_policy, play
from amago.nets.actor import Actor
from amago.nets.critic import _DiscreteValues
from amago.nets.distributions import ActionDistribution, FlooredCategorical
from amago.saved.source import find_source

FACTORS = (20.0, 100.0)


class _Advised(Actor):
    """An actor whose choice its critics take part in."""

    agent: Agent
    factor = 0.0
    alone = False
    """Whether the critics choose without the actor."""

    def at_discount(
        self, state: Tensor, index: int, mask: Tensor | None = None
    ) -> ActionDistribution:
        policy = super().at_discount(state, index, mask)
        values = self.agent.critics(state, self.agent.popart)
        assert isinstance(policy, FlooredCategorical) and isinstance(values, _DiscreteValues)
        logits = self.factor * values.table[:, :, index].mean(0)
        if not self.alone:
            logits = logits + policy.probs.log()
        return FlooredCategorical(logits, 0.0, mask)


def main() -> None:
    run, rollouts = parse(__doc__)
    source = find_source(run)
    agent = make_agent(source.config)
    source.fill(agent)
    agent.eval()
    actor = agent.actor
    actor.__class__ = _Advised
    assert isinstance(actor, _Advised)
    object.__setattr__(actor, "agent", agent)  # no submodule: the agent holds the actor
    ways = [("the actor", 0.0, False)]
    ways += [(f"softmax of {f:g} · Q", f, True) for f in FACTORS]
    ways += [(f"the actor and {f:g} · Q", f, False) for f in FACTORS]
    settings = settings_of(rollouts)
    for name, actor.factor, actor.alone in ways:
        with torch.no_grad():
            env = make_lanes(source.config.env, settings)
            records = play(make_policy(agent, settings), env, rollouts)
        success = np.mean([bool(record.success) for record in records])
        print(f"{name:24} return {np.mean([r.total for r in records]):7.3f}  success {success:.1%}")


if __name__ == "__main__":
    main()
