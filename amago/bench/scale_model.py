"""What measured costs say about more collectors than a machine has: computed, not measured."""

from __future__ import annotations

from dataclasses import dataclass

from amago.bench.results import Result

ROLLOUT_STEPS = 100
_STEP_SECONDS = (0.05, 0.001)
_COLLECTORS = (10, 100, 1000)


@dataclass(frozen=True)
class Costs:
    """Seconds, measured on one machine."""

    lanes: int
    """Of a collector, stepped one after the other; a share is one rollout of each."""
    acting: float
    """The policy's time per step of all lanes."""
    storing: float
    """The ingest thread's time per share."""
    calling: float
    """Ray's time per share that is handed out and comes back."""

    def steps_per_second(self, step_seconds: float) -> float:
        """Of one collector whose environment needs this long for a step."""
        return self.lanes / (self.lanes * step_seconds + self.acting)

    def ingest_load(self, collectors: int, step_seconds: float) -> float:
        """Time that the ingest thread would need per second."""
        shares = collectors * self.steps_per_second(step_seconds) / self.lanes / ROLLOUT_STEPS
        return shares * (self.storing + self.calling)

    def most_collectors(self, step_seconds: float) -> float:
        """As many as one ingest thread can serve."""
        return 1.0 / self.ingest_load(1, step_seconds)


def acting_seconds(steps_per_second: float, lanes: int, step_seconds: float) -> float:
    """The policy's time per step of all lanes, from the rate of one collector."""
    return max(lanes / steps_per_second - lanes * step_seconds, 0.0)


def forecasts(costs: Costs, about: str) -> list[Result]:
    """Throughput of many collectors, and how many are too many."""
    found = []
    for seconds in _STEP_SECONDS:
        env = f"{1000 * seconds:g} ms a step, {about}"
        found += [_forecast(costs, number, seconds, env) for number in _COLLECTORS]
        most = costs.most_collectors(seconds)
        found.append(
            Result("scale", f"computed: one ingest thread serves, {env}", most, "collectors")
        )
    return found


def _forecast(costs: Costs, collectors: int, seconds: float, env: str) -> Result:
    steps = collectors * costs.steps_per_second(seconds)
    load = costs.ingest_load(collectors, seconds)
    limit = ", which is the limit" if load > 1 else ""
    return Result(
        "scale",
        f"computed: {collectors:,} collectors, {env}",
        steps / max(load, 1.0),
        "env steps/s",
        "linear",
        1.0 / max(load, 1.0),
        note=f"ingest thread: {load:.2g} cores{limit}",
    )


def is_computed(result: Result) -> bool:
    return result.setting.startswith("computed: ")
