"""A run becomes one file that a colleague can load safely."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from amago.envs.catalogue import PRESETS, changed_settings
from amago.saved import packed
from amago.saved.files import read_json
from amago.saved.source import Source, find_source
from amago.saved.trust import check_env


def pack(
    run: str | Path,
    out: Path,
    *,
    also: Sequence[str | Path] = (),
    controls: Mapping[str, str | Path] | None = None,
    cannot: Sequence[str] = (),
    which: str = "latest",
    half: bool = False,
) -> packed.Card:
    """Write a finished run's agent and its card to `out`.

    `also` are runs of the same command with other seeds, `controls` other agents in the same
    domain; of both only the score is kept. `half` stores weights as float16.
    """
    source = find_source(run, which)
    if source.is_packed or source.header.get("custom"):
        why = "already packed" if source.is_packed else "trained with classes of its own"
        raise ValueError(f"{run} is {why}; pack a run of built-in parts")
    check_env(run, source.config.env, trust=False)
    folder = source.path.parent.parent
    result = _result(folder)
    card = packed.Card(
        header=source.header,
        command=_command_of(source),
        result=result,
        curve=list(_curve(folder)),
        seeds={str(r["seed"]): r["return_mean"] for r in (result, *map(_result, map(Path, also)))},
        controls={n: _result(Path(c))["return_mean"] for n, c in (controls or {}).items()},
        cannot=[*cannot, f"tested in {_worlds(source)} alone"],
    )
    packed.write(out, source.build(), card, half=half)
    packed.read_card(out)  # what could not be read again is refused now, not at a colleague's
    return card


def _command_of(source: Source) -> str:
    """What trains such an agent: the preset, and every setting that differs from it."""
    name, seed = source.header.get("preset") or "", source.header["seed"]
    if name not in PRESETS:
        return f"amago.train(config, seed={seed})"
    changed = [
        f"--{key.replace('_', '-')} {_text(value)}"
        for key, (value, _) in changed_settings(source.config, name).items()
    ]
    return " ".join(["amago train", name, f"--seed {seed}", *changed])


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _worlds(source: Source) -> str:
    env = source.config.env
    arguments = ", ".join(f"{name}={value}" for name, value in env.kwargs.items())
    return f"{', '.join(env.ids) or env.id}" + (f" with {arguments}" if arguments else "")


def _result(folder: Path) -> dict[str, Any]:
    path = folder / "result.json"
    if not path.exists():
        raise ValueError(
            f"{folder} has no result.json yet; finish the run with `amago resume {folder}`"
        )
    result: dict[str, Any] = read_json(path)
    return result


def _curve(folder: Path) -> Iterator[list[float]]:
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("eval/return_mean") is not None:
            yield [row["env_steps"], round(row["eval/return_mean"], 4)]
