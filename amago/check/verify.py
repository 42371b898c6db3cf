"""Whether a run folder is sound: every file of it is read, and what must agree is compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from amago.agent.make import make_agent
from amago.check.audit import audit
from amago.config import Config, from_dict
from amago.replay.codec import DamagedRecordError
from amago.replay.rarity import combine, count
from amago.replay.reader import TrajectoryReader
from amago.saved import checkpoint, kept
from amago.saved.files import read_json
from amago.saved.header import CONTROL, keeps_weights, read_header
from amago.saved.lost import lost_checkpoints
from amago.saved.trust import check_env

_MOST_LOOKS = 5


@dataclass(frozen=True)
class _Finding:
    """One thing that was looked at."""

    what: str
    detail: str
    sound: bool

    def __str__(self) -> str:
        return f"{'ok     ' if self.sound else 'PROBLEM'}  {self.what}: {self.detail}"


def verify(folder: Path, *, trust: bool = False) -> list[_Finding]:
    """Everything that can be checked without training; nothing is changed.

    Where a trainer has saved meanwhile, what it replaced may be missed: look again.
    """
    for _ in range(_MOST_LOOKS):
        before = kept.find(folder / "checkpoints")
        findings = _look(folder, trust=trust)
        if all(finding.sound for finding in findings):
            break
        if kept.find(folder / "checkpoints") == before:
            break
    return findings


def _look(folder: Path, *, trust: bool) -> list[_Finding]:
    header = read_header(folder)
    findings = [_looked("settings", lambda: _settings(header))]
    config = from_dict(header["config"]) if findings[0].sound else None
    findings += list(_checkpoints(folder / "checkpoints"))
    latest = kept.find(folder / "checkpoints")
    state, unread = _state(latest)
    findings += unread
    if config is not None and latest is None and keeps_weights(header):
        findings.append(_looked("checkpoints", partial(_none_yet, folder, config)))
    if config is not None and latest is not None:
        made = latest
        findings.append(
            _looked("weights", lambda: _weights(folder, config, made, header, trust=trust))
        )
    findings.append(_looked("metrics", lambda: _metrics(folder / "metrics.jsonl", state)))
    findings.append(_looked("timing", lambda: _timing(folder / "timing.jsonl", state)))
    if (folder / "replay").exists() or state:
        findings.append(_looked("replay", lambda: _replay(folder / "replay", state)))
        if config is not None and findings[-1].sound:
            findings += _relabeling(folder, config, header, trust=trust)
    if (folder / "result.json").exists():
        findings.append(_looked("result", lambda: _result(folder, state)))
    if (folder / CONTROL / "config.json").exists():
        of_control = _look(folder / CONTROL, trust=trust)
        findings += [replace(found, what=f"{CONTROL}: {found.what}") for found in of_control]
    return findings


def _looked(what: str, look: Callable[[], str]) -> _Finding:
    """What a look at something found; what it raises is the problem."""
    try:
        return _Finding(what, look(), True)
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        return _Finding(what, str(error), False)
    except (LookupError, TypeError, AttributeError) as error:
        return _Finding(what, f"it cannot be read ({type(error).__name__}: {error})", False)


def _settings(header: dict[str, Any]) -> str:
    from_dict(header["config"])
    return f"preset {header.get('preset') or 'none'}, seed {header['seed']}"


def _checkpoints(folder: Path) -> Iterator[_Finding]:
    for name in ("latest", "best"):
        if (folder / f"{name}.json").exists():
            yield _looked(f"{name}.json", partial(_pointer, folder, name))
        elif name == "latest" and kept.kept(folder):
            yield _Finding("latest.json", "is missing; the newest checkpoint is used", False)
    for path in kept.kept(folder):
        reason = checkpoint.problem(path)
        yield _Finding(
            f"checkpoint {int(path.name)}", reason or "as it was written", reason is None
        )


def _pointer(folder: Path, name: str) -> str:
    found = kept.find(folder, name)
    if found is None or read_json(folder / f"{name}.json") != {"checkpoint": found.name}:
        raise ValueError("names no checkpoint")
    return str(found)


def _state(latest: Path | None) -> tuple[dict[str, Any], list[_Finding]]:
    """The counters of the latest checkpoint; what is wrong with them, unless its checksums say."""
    if latest is None:
        return {}, []
    try:
        return checkpoint.read_state(latest), []
    except (ValueError, OSError) as error:
        known = checkpoint.problem(latest) is not None
        return {}, [] if known else [_Finding("counters", str(error), False)]


def _none_yet(folder: Path, config: Config) -> str:
    lost = lost_checkpoints(folder, config)
    if lost is not None:
        raise ValueError(lost)
    return "none yet"


def _weights(
    folder: Path, config: Config, latest: Path, header: dict[str, Any], *, trust: bool
) -> str:
    if header.get("custom"):
        return "not compared with the settings: the run has classes of its own"
    check_env(folder, config.env, trust=trust)
    agent = make_agent(config, empty=True)
    checkpoint.check_shapes(latest, agent)
    checkpoint.check_numbers(latest)
    return f"{sum(p.numel() for p in agent.parameters()):,} parameters, as the settings say"


def _metrics(path: Path, state: dict[str, Any]) -> str:
    rows = _rows(path, state, 0)
    known = next((row for row in rows if row["epoch"] == state.get("epoch")), None)
    for name in ("env_steps", "updates"):
        if known is not None and known[name] != state[name]:
            raise ValueError(f"{name} is {known[name]} here and {state[name]} in the checkpoint")
    return f"{len(rows)} epochs"


def _timing(path: Path, state: dict[str, Any]) -> str:
    return f"{len(_rows(path, state, 1))} epochs"


def _rows(path: Path, state: dict[str, Any], which: int) -> list[dict[str, Any]]:
    """The rows of a file, one for each epoch, at least as long as the checkpoint remembers."""
    data = path.read_bytes()
    data = data[: data.rfind(b"\n") + 1]  # a killed trainer may have been writing the last row
    if state and len(data) < state["offsets"][which]:
        raise ValueError(f"{path} is shorter than at the checkpoint: rows are lost")
    try:
        rows = [json.loads(line) for line in data.splitlines()]
        epochs = [row["epoch"] for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} has rows that cannot be read ({error})") from error
    if epochs != list(range(1, len(rows) + 1)):
        raise ValueError(f"{path} does not have one row for each epoch")
    return rows


def _replay(path: Path, state: dict[str, Any]) -> str:
    """Every record read, every count made again."""
    with TrajectoryReader(path) as store:
        low, high = state.get("window", (0, 0))
        missing = high - low - sum(low <= number < high for number in store.lengths)
        if missing:
            raise ValueError(f"{missing} trajectories of the checkpoint's window are missing")
        counts = []
        for trajectory_id in store.ids.tolist():
            try:
                trajectory = store.read(trajectory_id)
            except DamagedRecordError:
                continue
            if store.goals is not None:
                counts.append(count(trajectory))
        if store.damaged:
            raise ValueError(f"{len(store.damaged)} of {len(store)} trajectories are damaged")
        if counts and store.goal_counts().num_steps != combine(counts).num_steps:
            raise ValueError(
                "the stored goal counts do not match the trajectories, so something else has "
                "changed the replay; restore the folder from a copy, or train a new run"
            )
        return f"{len(store)} trajectories, {store.num_steps} steps"


def _relabeling(
    folder: Path, config: Config, header: dict[str, Any], *, trust: bool
) -> list[_Finding]:
    """What a sample of the replay is beside the environment itself, where it follows goals."""
    with TrajectoryReader(folder / "replay") as store:
        if store.goals is None:
            return []
        if "env" in header.get("custom", {}):
            detail = "not compared with the environment: it is the run's own class"
            return [_Finding("relabeling", detail, True)]

        def look() -> str:
            check_env(folder, config.env, trust=trust)
            return audit(config, store)

        return [_looked("relabeling", look)]


def _result(folder: Path, state: dict[str, Any]) -> str:
    result = read_json(folder / "result.json")
    for name in ("env_steps", "updates"):
        if state and result[name] != state[name]:
            raise ValueError(f"{name} is {result[name]}, in the checkpoint {state[name]}")
    return f"return {result['return_mean']:.4g}"
