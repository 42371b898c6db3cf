"""Package Delivery: all arms of the paper's legend, with many discounts and with one."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

_ABLATIONS = {
    "full": "",
    "no filtered cloning": "no-filtered-bc",
    "relabel all": "relabel-all",
    "no relabeling": "no-relabeling",
    "no memory": "no-memory",
}

ENTRY = Experiment(
    paper="Figure 7",
    claim="package-delivery-needs-memory-hindsight-and-discounts",
    question="Which parts does Package Delivery need?",
    measure="instructions complete",
    metric="success",
    preset="package-delivery",
    arms=tuple(
        Variant(name, f"{ablate} {single}".strip(), task=task)
        for task, single in (("many discounts", ""), ("one discount", "no-multi-gamma"))
        for name, ablate in _ABLATIONS.items()
    ),
    control="no memory",
    holds=(
        "many discounts: full > no memory, intervals apart",
        "many discounts: full > no relabeling, intervals apart",
        "many discounts: full > random play",
    ),
    caveats=("The preset also forecasts the next row, which the paper's agent does not.",),
)
