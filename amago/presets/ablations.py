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
class _Ablation:
    summary: str
    changes: Mapping[str, Any]
    """Settings by their dotted names; `env.kwargs.NAME` for arguments of the environment."""


ABLATIONS = {
    "no-relabeling": _Ablation("instructions are never changed", {"relabel.relabel": "none"}),
    "relabel-all": _Ablation(
        "every open goal is replaced by an achieved one", {"relabel.relabel": "all"}
    ),
    "no-memory": _Ablation("a residual MLP over the current row", {"memory": "feedforward"}),
    "no-multi-gamma": _Ablation("the acting discount alone", {"agent.discounts": "single"}),
    "no-filtered-bc": _Ablation("policy gradient alone", {"terms.cloning.weight": 0.0}),
    "no-popart": _Ablation("values on the scale of the rewards", {"heads.popart": False}),
    "no-planning": _Ablation(
        "the current goal is shown, later ones are not", {"instruction.hide_plan": True}
    ),
    "no-multi-goal": _Ablation(
        "instructions of one goal, relabeled as by HER; for environments with max_goals",
        {"relabel.multi_goal": False, "env.kwargs.max_goals": 1},
    ),
    "no-importance-sampling": _Ablation(
        "hindsight goals are drawn uniformly", {"relabel.importance_sampling": False}
    ),
    "gru": _Ablation("a recurrent memory", {"memory": "gru"}),
    "pre-ln": _Ablation("a standard pre-LN Transformer", _PLAIN_BLOCKS),
    "no-leaky-relu": _Ablation(
        "ReLU in the blocks and the heads",
        {"transformer.activation": "relu", "heads.activation": "relu"},
    ),
    "no-extra-norms": _Ablation(
        "without NormFormer's norms and head scales", {"transformer.extra_norms": False}
    ),
    "no-sigma-reparam": _Ablation("plain linear layers", {"transformer.sigma_reparam": False}),
    "naive": _Ablation(
        "pre-LN Transformer, ReLU, one discount of .99, two critics",
        {
            **_PLAIN_BLOCKS,
            "heads.activation": "relu",
            "agent.discounts": "single",
            "agent.acting_discount": 0.99,
            "heads.num_critics": 2,
        },
    ),
    "wide-gammas": _Ablation("shorter horizons beside the paper's", {"agent.discounts": "wide"}),
    "gcsl": _Ablation(
        "goal-conditioned supervised learning: all relabeled, all cloned, no policy gradient",
        {
            "relabel.relabel": "all",
            "terms.cloning.filter": "none",
            "terms.cloning.weight": 1.0,
            "terms.actor.weight": 0.0,
        },
    ),
    "world-model": _Ablation(
        "what happens next is forecast, too, at the paper's weight of .1",
        {"terms.world_model.weight": 0.1},
    ),
    "no-world-model": _Ablation(
        "nothing is forecast, in presets that do", {"terms.world_model.weight": 0.0}
    ),
    "critics-in-actor-loss": _Ablation(
        "the policy gradient reaches the critics, too", {"agent.critics_in_actor_loss": "trained"}
    ),
    "frozen-encoder-in-actor-loss": _Ablation(
        "the actor's losses do not reach encoder and memory",
        {"agent.encoder_in_actor_loss": "frozen"},
    ),
    "target-memory": _Ablation(
        "a slow copy of encoder and memory for the targets", {"agent.sequence_models": "target"}
    ),
    "separate-memory": _Ablation(
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
