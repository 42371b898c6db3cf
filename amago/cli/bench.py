"""`amago bench`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tyro

from amago.cli.parsing import parse

_WIDTH_OF_LOGS = 160


@dataclass(frozen=True)
class BenchOptions:
    """Measure how fast amago runs here, compared with what this machine can do."""

    case: tyro.conf.Positional[
        Literal["rollout", "learner", "replay", "memory", "start", "scale", "all"]
    ] = "all"
    """What to measure."""
    json: bool = False
    """Print a JSON list instead of a table."""
    record: bool = False
    """Append the run to benchmarks/history.jsonl and show what has changed since the last
    comparable one."""
    quick: bool = False
    """Fewer and shorter blocks, and nothing that takes minutes."""
    threads: int = 0
    """Threads for torch; 0 leaves torch's own choice."""
    device: str = "cpu"
    """Where networks learn and act: auto (a GPU, where there is one), cpu, cuda, cuda:1. Collectors
    act on the CPU."""


def bench(arguments: Sequence[str]) -> int:
    options = parse(BenchOptions, arguments, "amago bench")
    if options.threads < 0:
        raise ValueError(f"--threads must be 0 or more, got {options.threads}")
    import torch

    from amago.agent.device import find_device
    from amago.bench import record, suite
    from amago.bench.conditions import QUICK, Bench
    from amago.bench.timing import Effort
    from amago.process import prepare_process

    history = record.history_path() if options.record else None
    earlier = [] if history is None else record.read(history)
    prepare_process(options.threads)
    conditions = Bench(
        threads=torch.get_num_threads(),
        effort=QUICK if options.quick else Effort(),
        device=str(find_device(_device(options.device))),
        quick=options.quick,
        say=lambda message: print(f"bench: {message}", file=sys.stderr, flush=True),
    )
    results = suite.run(options.case, conditions)
    line = record.history_line(conditions, results)
    if options.json:
        print(json.dumps(line["results"], ensure_ascii=False))
    else:
        from rich.console import Console

        from amago.bench.table import result_table

        before = record.latest(earlier, line)
        changes = [record.change(result, before.get(result.key)) for result in results]
        console = Console()
        if not console.is_terminal:
            console.width = _WIDTH_OF_LOGS
        console.print(f"{line['machine']['model']}, {line['threads']} threads, {line['commit']}")
        console.print(result_table(results, changes if options.record else None))
    if history is not None:
        record.append(history, line)
    return 0


def _device(name: str) -> str:
    """What auto means here, where networks of many widths are measured."""
    import torch

    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"
