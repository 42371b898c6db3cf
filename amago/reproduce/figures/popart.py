"""PopArt on LunarLander-v3 with context 128: losses and gradients at three scales of rewards."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="Figure 11",
    claim="popart-keeps-losses-on-one-scale",
    question="Does PopArt keep losses and gradients on one scale, whatever the rewards are?",
    measure="return",
    preset="gym",
    arms=tuple(
        Variant(name, ablate, (f"agent.reward_scale={scale:g}",), f"rewards × {scale}")
        for scale in (1, 10, 800)
        for name, ablate in (("PopArt", ""), ("no PopArt", "no-popart"))
    ),
    set=("env.id=LunarLander-v3", "replay.context_length=128"),
    seeds=(0, 1),
    view="losses",
    control="no PopArt",
    holds=(
        "rewards × 800: grad/norm of no PopArt > grad/norm of PopArt",
        "rewards × 800: PopArt > no PopArt",
    ),
    caveats=("The paper: LunarLander-v2, which Gymnasium has no longer.",),
)
