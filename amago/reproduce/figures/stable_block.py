"""Activations of the Transformer with the stable block, without it, and without each part."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.popgym import EPOCHS, MINUTES

ENTRY = Experiment(
    paper="Figure 14",
    claim="the-stable-block-bounds-activations",
    question="Does the stable block keep activations small where attention must be sharp?",
    measure="return, best 1",
    preset="popgym",
    arms=(
        Variant("full"),
        Variant("pre-LN", "pre-ln"),
        Variant("no leaky ReLU", "no-leaky-relu"),
        Variant("no extra norms", "no-extra-norms"),
        Variant("no σReparam", "no-sigma-reparam"),
    ),
    set=("env.id=popgym/RepeatPreviousMedium",),
    seeds=(0, 1),
    epochs=EPOCHS,
    minutes=MINUTES,
    view="activations",
    control="pre-LN",
    holds=("activation/residual of pre-LN > activation/residual of full",),
    caveats=("Far shorter than the runs in which the paper saw training collapse.",),
)
