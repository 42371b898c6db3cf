"""Updates per second over context length."""

from __future__ import annotations

from amago.reproduce.entry import Measurement

ENTRY = Measurement(
    paper="Figure 6, right, and Figure 29",
    claim="one-transformer-updates-fast",
    question="How fast are updates over context length?",
    measure="updates per second",
    module="amago.bench.context_length",
    view="rates",
    minutes=20,
    caveats=("GPUs were not measured: their rows are open.",),
)
