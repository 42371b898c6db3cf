"""Active T-Maze: the cue has to be looked for before it can be recalled."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="appendix C.2",
    claim="an-active-t-maze-is-not-solved-by-memory",
    question="Does memory help where the cue must be looked for first?",
    measure="greedy return",
    preset="t-maze",
    arms=(Variant("full"), Variant("no memory", "no-memory")),
    set=("env.kwargs.active=True",),
    control="no memory",
    holds=("full <= 0.6",),
    caveats=("The paper reports no gain from its sequence model here, without a figure.",),
)
