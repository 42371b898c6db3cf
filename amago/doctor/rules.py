"""The rules of the doctor: each finds one thing that goes wrong, in a sentence with the flag to
look at. docs/diagnosis.md explains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from amago.config import Config
from amago.doctor.history import History, Row, Score, mean_age, pooled

_COLLAPSED = 0.02
"""Share of the largest entropy below which a policy is decided."""
_DEAD = 0.02
"""Share of actions that a cloning filter at work lets through and holds back at least."""
_DIVERGED = 10.0
"""Values this many times above the largest return seen cannot be true."""
_CLIPPED, _FAR_ABOVE = 0.98, 3.0
"""Share of clipped updates, and how far above the limit their mean norm is."""
_AGE, _YOUNG = 4.0, 0.75
"""Replay this many times older or younger than the first epoch promised; and an age in epochs
that is young whatever it promised."""
_FEW_EPOCHS = 10


@dataclass(frozen=True)
class _Finding:
    """One thing that goes wrong."""

    name: str
    sentence: str
    flag: str
    """The setting to look at first."""
    epoch: int

    def __str__(self) -> str:
        return self.sentence


_Rule = Callable[[History], tuple[str, str] | None]
"""A sentence and the flag in it; None where all is well or nothing is known."""


def below_random(history: History) -> tuple[str, str] | None:
    tested, random = history.tested, history.random
    enough = max(_FEW_EPOCHS, history.config.run.epochs / 3)
    early = history.result is None and history.epoch < enough
    if tested is None or random is None or early or not history.not_better_than_random:
        return None
    return (
        f"not better than random play: the agent earns {_plain(tested)}, random play "
        f"{_plain(random)}; train longer (--run.epochs), try another --optim.learning-rate, and "
        "check rewards and observations with `amago check-env`",
        "--run.epochs",
    )


def _entropy_collapsed(history: History) -> tuple[str, str] | None:
    shares = history.recent("policy/entropy_share")
    if not shares or max(shares) >= _COLLAPSED or history.solved:
        return None
    if history.success is None and not history.not_better_than_random:
        return None
    return (
        f"the policy has collapsed: its entropy is {_percent(fmean(shares))} of the largest, and "
        "the task is not solved; raise --heads.probability-floor or keep exploring for longer "
        "(--exploration.anneal-fraction)",
        "--heads.probability-floor",
    )


def _values_diverging(history: History) -> tuple[str, str] | None:
    key = next((key for key in history.rows[-1] if key.startswith("value/q@")), None)
    values = history.recent(key) if key else []
    largest = max((_largest_return(row) for row in history.rows), default=0.0)
    limit = _DIVERGED * history.config.agent.reward_scale * largest
    if not values or not largest or min(map(abs, values)) <= limit:
        return None
    return (
        f"values diverge: critics expect {values[-1]:.3g} where the largest return is "
        f"{limit / _DIVERGED:.3g} (times --agent.reward-scale); lower --optim.learning-rate or "
        "--agent.target-tau",
        "--optim.learning-rate",
    )


def _cloning_filter_dead(history: History) -> tuple[str, str] | None:
    settings = history.config.terms.cloning
    shares = history.recent("cloning/accepted")
    if not shares or settings.filter != "binary" or not settings.weight:
        return None
    nothing = max(shares) < _DEAD and not history.solved
    if not nothing and min(shares) <= 1 - _DEAD:
        return None
    return (
        f"the cloning filter is dead: it lets {_percent(fmean(shares))} of the replay's actions "
        "through; critics do not separate actions, so look at loss/critic, or try "
        "--terms.cloning.filter exponential",
        "--terms.cloning.filter",
    )


def _always_clipped(history: History) -> tuple[str, str] | None:
    shares, norms = history.recent("grad/clipped"), history.recent("grad/norm")
    limit = history.config.optim.grad_clip
    if not shares or min(shares) < _CLIPPED or fmean(norms) < _FAR_ABOVE * limit:
        return None
    return (
        f"gradients are always clipped: their norm is {fmean(norms):.3g} and the limit {limit:g}, "
        "so all updates are of the same size; raise --optim.grad-clip",
        "--optim.grad-clip",
    )


def _context_too_short(history: History) -> tuple[str, str] | None:
    context, length = history.config.replay.context_length, history.latest("rollout/length_mean")
    if context is None or length is None or history.config.memory == "feedforward":
        return None
    if length <= context:
        return None
    return (
        f"the context is shorter than episodes: memory reaches {context} steps back and rollouts "
        f"take {length:.0f}; raise --replay.context-length if what helps lies further back",
        "--replay.context-length",
    )


def _replay_age(history: History) -> tuple[str, str] | None:
    """Planned is what the first epoch promised: as many trajectories in every epoch."""
    age, added = mean_age(history.rows), history.rows_with("replay/added")
    if age is None or len(added) < _FEW_EPOCHS or not added[0]["replay/added"]:
        return None
    size = float(history.latest("replay/trajectories") or 0)
    planned = 0.5 * min(float(len(added)), size / added[0]["replay/added"])
    older, younger = age > _AGE * planned, age < max(planned / _AGE, _YOUNG)
    if not older and not younger:
        return None
    return (
        f"the replay is {'older' if older else 'younger'} than planned: updates learn from "
        f"rollouts that are {age:.1f} epochs old on average, the first epoch promised "
        f"{planned:.1f}; {'lower' if older else 'raise'} --replay.capacity, which counts "
        "trajectories",
        "--replay.capacity",
    )


def _updates_skipped(history: History) -> tuple[str, str] | None:
    skipped = history.latest("learner/skipped")
    if not skipped:
        return None
    return (
        f"{skipped:.0f} updates were skipped because a batch, loss or gradient was not finite; "
        "look for NaN and huge values with `amago check-env`, or lower --optim.learning-rate",
        "--optim.learning-rate",
    )


def _evaluation_below_training(history: History) -> tuple[str, str] | None:
    both = [row for row in history.evaluations if row.get("rollout/return_mean") is not None][-3:]
    if len(both) < 3 or history.epoch < _FEW_EPOCHS:
        return None
    tested, trained = pooled(both, "eval/"), pooled(both, "rollout/")
    floor = 0.0 if history.random is None else history.random.mean
    far = trained.mean - tested.mean > 0.25 * abs(trained.mean - floor)
    if not far or not trained.above(tested, errors=4.0):
        return None
    greedy = history.config.agent.greedy
    return (
        f"evaluations are far below training: {_plain(tested)} against {_plain(trained)} with "
        "exploration; "
        + ("sample actions (--agent.greedy False)" if greedy else "keep exploration while acting")
        + ", or compare the worlds of training and evaluation (--env.kwargs)",
        "--agent.greedy",
    )


RULES: Mapping[str, _Rule] = {
    "below-random": below_random,
    "entropy": _entropy_collapsed,
    "values": _values_diverging,
    "cloning": _cloning_filter_dead,
    "clipping": _always_clipped,
    "context": _context_too_short,
    "replay-age": _replay_age,
    "skipped": _updates_skipped,
    "evaluation": _evaluation_below_training,
}


def diagnose(
    rows: Sequence[Row], config: Config, result: Mapping[str, Any] | None = None
) -> list[_Finding]:
    """Everything that goes wrong in a run, by its metrics, settings and final test."""
    history = History(rows, config, result)
    if not rows:
        return []
    found = [(name, rule(history)) for name, rule in RULES.items()]
    return [_Finding(name, *said, history.epoch) for name, said in found if said is not None]


def _largest_return(row: Row) -> float:
    """The largest sum of rewards that one row tells of, whatever its sign."""
    mean, spread = row.get("rollout/return_mean"), row.get("rollout/return_std", 0.0)
    whole = 0.0 if mean is None else abs(float(mean)) + 2 * float(spread)
    return max(whole, sum(abs(float(part)) for part in row.get("rollout/return_per_block") or ()))


def _plain(score: Score) -> str:
    return f"{score.mean:.3g} ± {score.error:.2g}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
