"""POPGym: Transformer and GRU where recall is everything."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.popgym import EPOCHS, MINUTES

_IDS = ("RepeatPreviousMedium", "AutoencodeEasy", "CountRecallMedium", "ConcentrationEasy")

ENTRY = Experiment(
    paper="Figure 4",
    claim="transformers-recall-more-than-recurrent-memories",
    question="Does a Transformer recall more than a GRU in POPGym?",
    measure="return, best 1",
    preset="popgym",
    arms=tuple(
        Variant(name, ablate, (f"env.id=popgym/{task}",), task)
        for task in _IDS
        for name, ablate in (("full", ""), ("GRU", "gru"), ("no memory", "no-memory"))
    ),
    epochs=EPOCHS,
    minutes=MINUTES,
    control="GRU",
    holds=("full > GRU, intervals apart", "full > no memory, intervals apart"),
    caveats=("Four of the recall-intensive environments.",),
)
