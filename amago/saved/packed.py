"""A trained agent as one file: weights in safetensors, everything else as JSON in its metadata.

A colleague can load it: reading it runs no code, imports no module that the file names, and
refuses unknown keys and absurd sizes before anything is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from amago.agent.agent import Agent
from amago.config import Config, from_dict
from amago.envs.joint import joint_tasks
from amago.saved.files import plain

SUFFIX = ".safetensors"
_FORMAT = "amago agent 1"
_MAX_FILE_BYTES = 256 * 2**20
_MAX_CARD_BYTES = 2**20
_MAX_ARGUMENT = 10_000
"""Largest number among the arguments of a packed agent's environment."""


@dataclass(frozen=True)
class Card:
    """What is known of a packed agent besides its weights."""

    header: dict[str, Any]
    """config.json of its run: configuration, seed, preset, version of the code."""
    command: str
    """What trains such an agent."""
    result: dict[str, Any]
    """The run's final test, with random play and the oracle in `reference_scores`."""
    curve: list[list[float]]
    """Evaluations during training: [environment steps, mean return]."""
    seeds: dict[str, float]
    """Mean return of the same command, by seed; this agent's own among them."""
    controls: dict[str, float]
    """Mean return of other agents in the same domain, such as one without memory."""
    cannot: list[str]
    """What the agent cannot do, or was never asked to."""

    @property
    def config(self) -> Config:
        return from_dict(self.header["config"])


def write(path: Path, agent: Agent, card: Card, *, half: bool = False) -> None:
    """Everything but the target copies, which reading makes again; `half` stores float16."""
    tensors = {
        name: value.detach().to(
            torch.float16 if half and value.dtype == torch.float32 else value.dtype
        )
        for name, value in agent.state_dict().items()
        if not name.startswith("target_")
    }
    metadata = {"format": _FORMAT, "card": json.dumps(asdict(card))}
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not safetensors' own writing of files, which lets nobody else read them.
    path.write_bytes(to_bytes({n: value.contiguous() for n, value in tensors.items()}, metadata))


def read_card(path: Path) -> Card:
    """The card of a packed agent, checked."""
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError(f"{path} is larger than {_MAX_FILE_BYTES >> 20} MB: not an agent of amago")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or not a packed agent ({error})") from error
    if metadata.get("format") != _FORMAT or set(metadata) != {"format", "card"}:
        raise ValueError(
            f"{path} is not a packed agent of this version: expected the format {_FORMAT!r}, got "
            f"{metadata.get('format')!r}; pack the run again with `amago pack RUN`"
        )
    if len(metadata["card"]) > _MAX_CARD_BYTES:
        raise ValueError(f"{path} has a card of more than {_MAX_CARD_BYTES >> 10} kB: refused")
    try:
        values = plain(json.loads(metadata["card"]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} has a card that is not valid JSON ({error})") from error
    return _checked(path, values)


def _checked(path: Path, values: Any) -> Card:
    names = {field.name for field in fields(Card)}
    if not isinstance(values, dict) or set(values) != names:
        given = sorted(values) if isinstance(values, dict) else type(values).__name__
        raise ValueError(f"{path}: expected a card with {sorted(names)}, got {given}")
    card = Card(**values)
    wrong = [name for name, fits in _FITS.items() if not fits(getattr(card, name))]
    if wrong:
        raise ValueError(f"{path}: what its card says of {', '.join(wrong)} cannot be read")
    if card.header.get("custom"):
        raise ValueError(f"{path}: expected the header of a run without custom classes")
    env = card.config.env
    for settings in (env, *(task.settings for task in joint_tasks(env))):
        if ":" in settings.id:
            raise ValueError(
                f"{path} names the environment {settings.id!r}, which would import a module; a "
                "packed agent may only name registered environments"
            )
        _check_arguments(path, settings.kwargs)
    return card


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scores(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


_FITS: dict[str, Callable[[Any], bool]] = {
    "header": lambda value: isinstance(value, dict) and {"config", "seed"} <= set(value),
    "command": lambda value: isinstance(value, str),
    "result": lambda value: isinstance(value, dict) and _number(value.get("return_mean")),
    "curve": lambda value: (
        isinstance(value, list)
        and all(
            isinstance(point, list) and len(point) == 2 and all(map(_number, point))
            for point in value
        )
    ),
    "seeds": _scores,
    "controls": _scores,
    "cannot": lambda value: isinstance(value, list) and all(isinstance(x, str) for x in value),
}
"""What the entries of a card must be."""


def _check_arguments(path: Path, kwargs: Mapping[str, Any]) -> None:
    for name, value in kwargs.items():
        numeric = isinstance(value, int | float) and abs(value) <= _MAX_ARGUMENT
        if not (numeric or (isinstance(value, str) and len(value) <= 100)):
            raise ValueError(
                f"{path}: expected arguments of the environment to be short text or numbers up to "
                f"{_MAX_ARGUMENT}, got {name}={value!r}"
            )


def check_shapes(path: Path, agent: Agent) -> None:
    """ValueError unless the file has the tensors of the agent (which may be on device "meta")."""
    wanted = {
        name: list(value.shape)
        for name, value in agent.state_dict().items()
        if not name.startswith("target_")
    }
    with safe_open(path, "pt") as file:
        found = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    if wanted != found:
        wrong = sorted(
            name for name in wanted.keys() | found if wanted.get(name) != found.get(name)
        )
        raise ValueError(
            f"{path} does not fit its own configuration, or this version of amago: "
            f"{len(wrong)} tensors differ, such as {wrong[0]} (expected {wanted.get(wrong[0])}, "
            f"got {found.get(wrong[0])}); pack the run again"
        )


def read_weights(path: Path, agent: Agent) -> None:
    """Fill an agent; its target copies begin as the networks that they follow."""
    check_shapes(path, agent)
    tensors: dict[str, Tensor] = load_file(path, device=str(agent.discounts.device))
    for name in agent.state_dict():
        if name.startswith("target_"):
            tensors[name] = tensors[_followed(name)]
    agent.load_state_dict(tensors)


def _followed(name: str) -> str:
    """target_critics.x follows critics.x; target_trunk.memory.x follows memory.x."""
    return name.removeprefix("target_trunk.").removeprefix("target_")
