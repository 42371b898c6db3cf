"""CountRecallMedium as others have measured the authors' code: share of right answers."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

ENTRY = Experiment(
    paper="the authors' code, CountRecallMedium",
    claim="queries-answered-with-a-tenth-of-the-samples",
    question="How many queries of CountRecallMedium are answered right with a tenth of the "
    "authors' samples?",
    measure="return, best 1",
    preset="popgym",
    arms=(Variant("full"), Variant("GRU", "gru"), Variant("no memory", "no-memory")),
    set=("env.id=popgym/CountRecallMedium",),
    on_cpu=("run.epochs=80", "run.updates_per_epoch=150"),
    probes=(Probe("answers", measure="answers", greedy=True, episodes=256, lanes=128),),
    view="beside",
    control="no memory",
    holds=(
        "answers of full >= 0.998",
        "env_steps of full <= 800000",
        "full > no memory, intervals apart",
    ),
    caveats=("One of 27 answers is right: a policy without memory still learns which are likely.",),
)
