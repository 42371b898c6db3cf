"""POPGym: other sets of discounts where samples are scarce."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.popgym import EPOCHS, MINUTES

_SETS = {
    "full": (),
    "the paper's discounts": ("agent.discounts=auto",),
    "wide discounts": ("agent.discounts=wide",),
    "one discount": ("agent.discounts=single",),
}

ENTRY = Experiment(
    paper="Figure 18",
    claim="short-horizons-help-where-samples-are-scarce",
    question="Do short horizons among the discounts help where samples are scarce?",
    measure="return, best 1",
    preset="popgym",
    arms=tuple(
        Variant(name, set=(f"env.id=popgym/{task}", *chosen), task=task)
        for task in ("AutoencodeEasy", "CountRecallEasy")
        for name, chosen in _SETS.items()
    ),
    seeds=(0, 1),
    epochs=EPOCHS,
    minutes=MINUTES,
    control="the paper's discounts",
    holds=("wide discounts > the paper's discounts",),
    caveats=('"Full" has the preset\'s discounts, which reach from short to long.',),
)
