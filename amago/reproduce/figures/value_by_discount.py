"""Mean values over training, one curve per discount."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="Figure 12",
    claim="each-discount-has-its-own-value",
    question="How do values at different discounts grow in training?",
    measure="instructions complete",
    metric="success",
    preset="package-delivery",
    arms=(Variant("full"), Variant("the paper's discounts", set=("agent.discounts=auto",))),
    seeds=(0,),
    view="discounts",
    control="the paper's discounts",
    holds=("full > random play",),
    caveats=("Values are of the replay's actions, in units of scaled rewards.",),
)
