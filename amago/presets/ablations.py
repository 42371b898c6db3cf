"""Every ablation of the paper as a name for the settings that it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amago.checks import did_you_mean
from amago.config import Config, override

_PLAIN_BLOCKS = {
    "transformer.activation": "relu",
    "transformer.extra_norms": False,
    "transformer.sigma_reparam": False,
}


@dataclass(frozen=True)
class Ablation:
    summary: str
    changes: Mapping[str, Any]
    """Settings by their dotted names; `env.kwargs.NAME` for arguments of the environment."""


ABLATIONS = {
    "no-relabeling": Ablation("instructions are never changed", {"relabel.relabel": "none"}),
    "relabel-all": Ablation(
        "every open goal is replaced by an achieved one", {"relabel.relabel": "all"}
    ),
    "no-memory": Ablation("a residual MLP over the current row", {"memory": "feedforward"}),
    "no-multi-gamma": Ablation("the acting discount alone", {"agent.discounts": "single"}),
    "no-filtered-bc": Ablation("policy gradient alone", {"terms.cloning.weight": 0.0}),
    "no-popart": Ablation("values on the scale of the rewards", {"heads.popart": False}),
    "no-planning": Ablation(
        "the current goal is shown, later ones are not", {"instruction.hide_plan": True}
    ),
    "no-multi-goal": Ablation(
        "instructions of one goal, relabeled as by HER; for environments with max_goals",
        {"relabel.multi_goal": False, "env.kwargs.max_goals": 1},
    ),
    "no-importance-sampling": Ablation(
        "hindsight goals are drawn uniformly", {"relabel.importance_sampling": False}
    ),
    "gru": Ablation("a recurrent memory", {"memory": "gru"}),
    "pre-ln": Ablation("a standard pre-LN Transformer", _PLAIN_BLOCKS),
    "no-leaky-relu": Ablation(
        "ReLU in the blocks and the heads",
        {"transformer.activation": "relu", "heads.activation": "relu"},
    ),
    "no-extra-norms": Ablation(
        "without NormFormer's norms and head scales", {"transformer.extra_norms": False}
    ),
    "no-sigma-reparam": Ablation("plain linear layers", {"transformer.sigma_reparam": False}),
    "naive": Ablation(
        "pre-LN Transformer, ReLU, one discount of .99, two critics",
        {
            **_PLAIN_BLOCKS,
            "heads.activation": "relu",
            "agent.discounts": "single",
            "agent.acting_discount": 0.99,
            "heads.num_critics": 2,
        },
    ),
    "wide-gammas": Ablation("shorter horizons beside the paper's", {"agent.discounts": "wide"}),
    "gcsl": Ablation(
        "goal-conditioned supervised learning: all relabeled, all cloned, no policy gradient",
        {
            "relabel.relabel": "all",
            "terms.cloning.filter": "none",
            "terms.cloning.weight": 1.0,
            "terms.actor.weight": 0.0,
        },
    ),
    "world-model": Ablation(
        "what happens next is forecast, too, at the paper's weight of .1",
        {"terms.world_model.weight": 0.1},
    ),
    "no-world-model": Ablation(
        "nothing is forecast, in presets that do", {"terms.world_model.weight": 0.0}
    ),
    "critics-in-actor-loss": Ablation(
        "the policy gradient reaches the critics, too", {"agent.critics_in_actor_loss": "trained"}
    ),
    "frozen-encoder-in-actor-loss": Ablation(
        "the actor's losses do not reach encoder and memory",
        {"agent.encoder_in_actor_loss": "frozen"},
    ),
    "target-memory": Ablation(
        "a slow copy of encoder and memory for the targets", {"agent.sequence_models": "target"}
    ),
    "separate-memory": Ablation(
        "an encoder and memory for the actor, others for the critics",
        {"agent.sequence_models": "separate"},
    ),
}
"""Paper Figures 7, 10, 18, 22 and 26."""


def ablate(config: Config, names: Sequence[str]) -> Config:
    """The settings with some ablations applied."""
    for name in names:
        if name not in ABLATIONS:
            hint = did_you_mean(name, ABLATIONS)
            raise ValueError(
                f"no ablation is called {name!r}; {hint}`amago presets --ablations` lists them"
            )
        config = override(config, ABLATIONS[name].changes)
    return config
