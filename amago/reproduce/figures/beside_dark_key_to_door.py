"""Dark Key-To-Door as others have measured the authors' code: 8×8, attempts of 50, 500 steps."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

SHAPE = ("env.kwargs.grid=8", "env.kwargs.trial_limit=50", "env.kwargs.horizon=500")
BUDGET = ("env.num_lanes=32", "run.epochs=50", "run.updates_per_epoch=150")
"""800,000 environment steps, a tenth of what the authors' code had."""
_LONG = ("env.kwargs.horizon=4000",)

ENTRY = Experiment(
    paper="the authors' code, Dark Key-To-Door",
    claim="doors-opened-with-a-tenth-of-the-samples",
    question="How many doors does the agent open with a tenth of the authors' samples?",
    measure="return of 500 steps",
    preset="dark-key-to-door",
    arms=(Variant("full"), Variant("GRU", "gru"), Variant("no memory", "no-memory")),
    set=SHAPE,
    on_cpu=BUDGET,
    probes=(
        Probe("doors", measure="doors", greedy=True, episodes=256, lanes=128),
        Probe("doors-sampled", measure="doors", greedy=False, episodes=256, lanes=128),
        Probe("last-doors", _LONG, measure="last-doors", greedy=True, episodes=256, lanes=128),
        Probe(
            "last-doors-sampled", _LONG, measure="last-doors", greedy=False, episodes=256, lanes=128
        ),
    ),
    view="beside",
    adaptation=True,
    control="no memory",
    holds=(
        "doors of full >= 27.4",
        "last-doors of full >= 28.2",
        "env_steps of full <= 800000",
        "full > no memory, intervals apart",
    ),
    caveats=(
        "Their environment spends one step on each reset, ours none.",
        "Probes called sampled draw actions from the policy; the authors' code acted greedily.",
        "last-doors: the same agent goes on to 4,000 steps; doors of the last 500 count.",
    ),
)
