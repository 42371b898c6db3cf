"""The tables of docs/scaling.md: what was measured here, and what follows for more collectors.

    python benchmarks/scaling.py [--quick] [--write docs/scaling.md]

Runs `amago bench scale`, on an otherwise idle machine, some ten minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from generated import put

from amago.bench import scale
from amago.bench.conditions import QUICK, Bench
from amago.bench.results import Result
from amago.bench.scale_model import is_computed
from amago.bench.timing import Effort
from amago.training.view import number

HEAD = "| what | value | unit | of linear | note |\n|---|---|---|---|---|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter blocks, two collectors")
    parser.add_argument("--write", type=Path, help="page that has a place for the tables")
    options = parser.parse_args()
    bench = Bench(
        effort=QUICK if options.quick else Effort(),
        quick=options.quick,
        say=lambda message: print(message, file=sys.stderr, flush=True),
    )
    load = os.getloadavg()[0]
    results = scale.run(bench)
    about = f"{os.cpu_count()} cores, load {load:.1f} before; * other processes disturbed it"
    tables = {
        "measured": f"{about}.\n\n{table([r for r in results if not is_computed(r)])}",
        "computed": table([r for r in results if is_computed(r)]),
    }
    for name, text in tables.items():
        print(f"{name}: {text}")
        if options.write is not None:
            put(options.write, name, text)


def table(results: Sequence[Result]) -> str:
    return "\n".join([HEAD, *map(row, results)])


def row(result: Result) -> str:
    value = "–" if result.value is None else number(result.value)
    linear = "" if result.ratio is None else f"{result.ratio:.2f}"
    setting = result.setting.removeprefix("computed: ")
    star = "*" if result.disturbed else ""
    return f"| {setting} | {value}{star} | {result.unit} | {linear} | {result.note} |"


if __name__ == "__main__":
    main()
