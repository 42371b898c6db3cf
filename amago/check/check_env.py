"""`amago check-env`: everything that is found out about an environment before training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from amago.check.environment import EnvReport, Problem, examine
from amago.check.forecast import Forecast, forecast
from amago.envs.in_process import Env
from amago.types import ObsSpec

_TOLERANCE = 1e-4
"""Largest difference between acting and training states, in float32."""


@dataclass(frozen=True)
class Check:
    """Everything `amago check-env` says."""

    report: EnvReport
    forecast: Forecast | None

    @property
    def problems(self) -> list[Problem]:
        return self.report.problems

    def __str__(self) -> str:
        rows = _seen(self.report) + ([] if self.forecast is None else self.forecast.lines())
        text = [f"  {name:<12} {value}" for name, value in rows]
        problems = [f"  {n}. {p.what}\n     → {p.remedy}" for n, p in enumerate(self.problems, 1)]
        heading = (
            f"{len(problems)} problem{'s' * (len(problems) != 1)}" if problems else "no problem"
        )
        return "\n".join([self.report.name, *text, heading, *problems])


def check(
    make_env: Callable[[], Env],
    num_steps: int = 1000,
    seed: int = 0,
    launch: str = "env=make_env",
) -> Check:
    """Examine an environment; where it can be played at all, forecast training on it."""
    report = examine(make_env, num_steps, seed)
    if report.spec is None or not report.playable:
        return Check(report, None)
    try:
        cost = forecast(make_env, report, seed, launch)
    except Exception:
        if not report.problems:
            raise
        return Check(report, None)  # the problems found already explain it
    if cost is None or math.isnan(cost.acting_error):
        if not report.problems:
            report.add(
                "values that are not finite came out of the network, though none went in",
                "scale observations and rewards to at most about a thousand",
            )
        return Check(report, None)
    if cost.acting_error > _TOLERANCE:
        report.add(
            f"states while acting differ from those of training by {cost.acting_error:.2g}",
            "look for values beyond 1e6 in observations and rewards, and scale them",
        )
    return Check(report, cost)


def _seen(report: EnvReport) -> list[tuple[str, str]]:
    """What amago sees, as named lines."""
    if report.spec is None:
        return []
    spec = report.spec
    rows = [("observation", f"{key}: {_kind(item)}") for key, item in spec.obs.items()]
    sizes = f" {list(spec.action.sizes)}" if spec.action.sizes else f" {spec.action.size}"
    low, high = report.reward_range
    length = "none ended" if report.mean_length is None else f"mean {report.mean_length:.4g} steps"
    return [
        *rows,
        ("action", spec.action.kind.replace("_", "-") + sizes),
        ("horizon", "unknown" if spec.horizon is None else f"{spec.horizon} steps"),
        ("episodes", f"{report.episodes} in {report.steps} random steps, {length}"),
        ("ends", f"{report.terminated} terminated (no future), {report.truncated} truncated "
                 "(bootstraps); amago resets"),
        ("reward", f"{low:.4g}..{high:.4g} in random play"),
        ("success", "reported in info" if report.reports_success else "not reported in info"),
        ("step", f"{1e6 * report.step_seconds:,.0f} µs"),
    ]  # fmt: skip


def _kind(item: ObsSpec) -> str:
    shape = "×".join(map(str, item.shape)) or "one"
    extra = f" of {item.size}" if item.kind == "category" else ""
    return f"{shape} {item.kind}{extra} ({item.dtype})"
