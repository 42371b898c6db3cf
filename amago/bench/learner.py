"""How fast the learner updates, and how much memory an update takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from amago.bench import matmul
from amago.bench.conditions import Bench
from amago.bench.flops import update_flops
from amago.bench.plain.agent import PlainAgent
from amago.bench.plain.learner import PlainLearner
from amago.bench.processes import in_child, limit_memory
from amago.bench.results import Result, Target, duration, rate
from amago.bench.synthetic import (
    Size,
    config_of,
    make_batch,
    make_learner,
    spec_of,
    uniform_lengths,
)
from amago.bench.timing import Effort, Timing, interleave
from amago.process import peak_bytes, prepare_process

_GB = 1e9


@dataclass(frozen=True)
class _UpdateCase:
    """One row of the table of targets."""

    setting: str
    size: Size
    utilisation: float | None = None
    """Least share of the machine's limit."""
    per_second: float | None = None
    """Least updates per second."""
    peak_gb: float | None = None
    """Most memory of the whole process."""
    faster_than_padded: float | None = None
    """Windows of uniform length, this many times faster than computing the padding."""


POPGYM = Size(256, 3, (512, 512, 200), 24, 100)
LONG = Size(256, 3, (128, 128, 64), 24, 500)
MEDIUM = Size(128, 2, (128, 128, 64), 24, 128)

CASES = (
    _UpdateCase("d=128, 2 layers, 24x128", MEDIUM, per_second=9.0),
    _UpdateCase("POPGym size: d=256, 3 layers, 24x100", POPGYM, utilisation=0.65),
    _UpdateCase("d=256, 3 layers, 24x500", LONG, utilisation=0.6, peak_gb=2.0),
    _UpdateCase("d=256, 3 layers, 24 of 1..500", LONG, faster_than_padded=1.7),
)


def run(bench: Bench, cases: Sequence[_UpdateCase] = CASES) -> Iterator[Result]:
    yield _machine_limit(bench)
    for case in cases:
        bench.say(f"learner: {case.setting}")
        yield from _speed(case, bench)
        if case.peak_gb is not None:
            yield _peak(case, bench)


def _machine_limit(bench: Bench) -> Result:
    """The rate that utilisation is a share of; by it results of two machines can be compared."""
    product = interleave({"matmul": matmul.multiplication(bench.device)}, bench.effort)["matmul"]
    shown = rate(matmul.flops() / 1e9, product)
    return Result("learner", "this machine's matrix products", unit="GFLOP/s", **shown)


def _speed(case: _UpdateCase, bench: Bench) -> list[Result]:
    size = case.size
    lengths = None if case.faster_than_padded is None else uniform_lengths(size)
    batch = make_batch(size, lengths).to(bench.device)
    plain = PlainAgent(spec_of(size), config_of(size)).to(bench.device)
    ours, theirs = make_learner(size, bench.device), PlainLearner(plain)
    contenders: dict[str, Callable[[], Any]] = {
        "amago": lambda: ours.step(batch),
        "matmul": matmul.multiplication(bench.device),
        "plain": lambda: theirs.step(batch),
    }
    if lengths is not None:
        full = make_batch(size, [max(lengths)] * len(lengths)).to(bench.device)
        padding = make_learner(size, bench.device)
        contenders["padded"] = lambda: padding.step(full)
    timings = interleave(contenders, bench.effort)
    mine = timings["amago"]
    ratios = {
        name: timing.seconds / mine.seconds for name, timing in timings.items() if name != "amago"
    }
    ratios["matmul"] = utilisation(size, batch.lengths, mine, timings["matmul"])
    results = []
    for name, ratio in ratios.items():
        if case.per_second is not None:
            unit, shown = "updates/s", rate(1.0, mine, timings[name])
        else:
            unit, shown = "s/update", duration(mine, timings[name])
        target = _target(case, name)
        results.append(
            Result("learner", case.setting, unit=unit, yardstick=name, ratio=ratio, target=target,
                   **shown)
        )  # fmt: skip
    return results


def _target(case: _UpdateCase, yardstick: str) -> Target | None:
    if yardstick == "matmul" and case.utilisation is not None:
        return Target("ratio", "≥", case.utilisation)
    if yardstick == "matmul" and case.per_second is not None:
        return Target("value", "≥", case.per_second)
    if yardstick == "padded" and case.faster_than_padded is not None:
        return Target("ratio", "≥", case.faster_than_padded)
    return None


def utilisation(size: Size, rows: Sequence[int], update: Timing, product: Timing) -> float:
    """Share of the machine's limit that goes into what the method needs."""
    needed = update_flops(spec_of(size), config_of(size), rows).total
    limit = matmul.flops() / product.seconds
    return needed / update.seconds / limit


def _peak(case: _UpdateCase, bench: Bench) -> Result:
    bench.say(f"learner: memory of {case.setting}")
    assert case.peak_gb is not None
    effort = Effort(rounds=1, max_rounds=1, block_seconds=0.0)
    answer = in_child("update", update_payload(case.size, bench, effort, 8 * case.peak_gb))
    return peak_result("learner", case.setting, answer, case.peak_gb)


def peak_result(case: str, setting: str, answer: dict[str, Any], most_gb: float) -> Result:
    """Memory at its highest: resident, interpreter and libraries included, or what tensors took
    of a GPU."""
    target = Target("value", "≤", most_gb)
    if "error" in answer:
        return Result(case, setting, None, "GB at peak", target=target, note=answer["error"])
    return Result(case, setting, answer["peak_bytes"] / _GB, "GB at peak", target=target)


def update_payload(size: Size, bench: Bench, effort: Effort, limit_gb: float) -> dict[str, Any]:
    return {
        "size": asdict(size),
        "threads": bench.threads,
        "device": bench.device,
        "effort": asdict(effort),
        "limit_bytes": limit_gb * _GB,
    }


def update_in_child(payload: dict[str, Any]) -> dict[str, Any]:
    """Timings of updates of one size beside the machine's limit, and the peak of memory."""
    prepare_process(payload["threads"])
    fields = payload["size"]
    listed = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    size = Size(**fields | listed)
    device = torch.device(payload["device"])
    learner, batch = make_learner(size, str(device)), make_batch(size).to(device)
    product = matmul.multiplication(str(device))
    product()
    contenders: dict[str, Callable[[], Any]] = {
        "amago": lambda: learner.step(batch),
        "matmul": product,
    }
    # CUDA reserves far more addresses than it uses, and has its own limit.
    limit = (
        payload["limit_bytes"] if device.type == "cuda" else limit_memory(payload["limit_bytes"])
    )
    try:
        timings = interleave(contenders, Effort(**payload["effort"]))
    except torch.OutOfMemoryError:
        return {"error": f"out of memory of {device}"}
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        return {"error": f"out of memory at a limit of {limit / _GB:.1f} GB"}
    return {
        "timings": {name: asdict(timing) for name, timing in timings.items()},
        "peak_bytes": _peak_bytes(device),
    }


def _peak_bytes(device: torch.device) -> int:
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_bytes()
