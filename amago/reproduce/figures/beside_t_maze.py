"""T-Maze as others have measured the authors' code: corridors of 32 to 256, tested at 128."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

_CORRIDORS = " ".join(f"amago/TMaze-v0?corridor={length}" for length in range(32, 257, 32))

ENTRY = Experiment(
    paper="the authors' code, T-Maze",
    claim="turns-taken-with-a-tenth-of-the-samples",
    question="Does the agent turn right at 128 steps with a tenth of the authors' samples?",
    measure="greedy return over all corridors",
    preset="t-maze",
    arms=(Variant("full"), Variant("GRU", "gru"), Variant("no memory", "no-memory")),
    set=(f"env.ids={_CORRIDORS}",),
    on_cpu=("run.epochs=40",),
    probes=(
        Probe(
            "turns", ("env.ids=()", "env.kwargs.corridor=128"), greedy=True, episodes=256, lanes=128
        ),
    ),
    view="beside",
    control="no memory",
    holds=(
        "turns of full >= 1.00",
        "env_steps of full <= 800000",
        "full > no memory, intervals apart",
    ),
    caveats=("A wrong step costs 1/128 there, 1/corridor here.",),
)
