"""A run's whole configuration: the stages' settings, and its form on disk."""

from __future__ import annotations

import ast
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amago.agent.settings import AgentSettings, OptimSettings
from amago.agent.terms import TermSettings
from amago.checks import did_you_mean
from amago.envs.settings import EnvSettings
from amago.nets.settings import (
    MEMORIES,
    EncoderSettings,
    HeadSettings,
    InstructionSettings,
    TransformerSettings,
)
from amago.replay.settings import RelabelSettings, ReplaySettings
from amago.rollout.settings import ExplorationSettings, RolloutSettings
from amago.scale.settings import ScaleSettings
from amago.training.settings import RunSettings

MACHINE_SETTINGS = (
    "run.threads", "run.device", "run.report", "run.control", "run.wandb_project",
    "env.num_workers",
)  # fmt: skip
"""Settings that say where a run happens and what it writes, not what it learns."""

_CONSTANTS = {"config.terms.cloning.samples": 1, "config.run.tf32": True}
"""Former settings that are constants now; a file may still name them with these values."""


@dataclass(frozen=True)
class Config:
    env: EnvSettings = field(default_factory=EnvSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    exploration: ExplorationSettings = field(default_factory=ExplorationSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    relabel: RelabelSettings = field(default_factory=RelabelSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    instruction: InstructionSettings = field(default_factory=InstructionSettings)
    memory: str = "transformer"
    """What remembers: transformer, gru, or feedforward (no memory at all)."""
    transformer: TransformerSettings = field(default_factory=TransformerSettings)
    heads: HeadSettings = field(default_factory=HeadSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    terms: TermSettings = field(default_factory=TermSettings)
    optim: OptimSettings = field(default_factory=OptimSettings)
    run: RunSettings = field(default_factory=RunSettings)
    scale: ScaleSettings = field(default_factory=ScaleSettings)

    def __post_init__(self) -> None:
        if self.memory not in MEMORIES:
            raise ValueError(f"--memory takes {', '.join(MEMORIES)}, got {self.memory!r}")
        if self.run.control and self.memory == "feedforward":
            raise ValueError(
                "--control compares with an agent without memory, which --memory feedforward is; "
                "leave one of them out"
            )
        if self.scale.collectors > self.env.num_lanes:
            raise ValueError(
                f"--scale.collectors {self.scale.collectors} have {self.env.num_lanes} lanes to "
                "share; raise --env.num-lanes, or ask for fewer collectors"
            )

    def __repr__(self) -> str:
        everything = dotted(self)
        shown = ("env.ids" if self.env.ids else "env.id", "memory", "run.epochs")
        settings = ", ".join(f"{name}={everything[name]!r}" for name in shown)
        return f"Config({settings}, and {len(everything) - len(shown)} more)"


def literal(text: str) -> Any:
    """What a setting's text stands for: a Python literal, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def to_dict(config: Config) -> dict[str, Any]:
    """Plain JSON values, nested as the dataclasses are."""
    return dataclasses.asdict(config)


def from_dict(values: dict[str, Any]) -> Config:
    """The inverse of to_dict, also after a trip through JSON."""
    config: Config = _build(Config, values, "config")
    return config


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """A copy with dotted settings replaced: {"optim.learning_rate": 1e-3}.

    `env.kwargs.NAME` sets one argument of the environment and keeps the others.
    """
    values = to_dict(config)
    for path, value in changes.items():
        *parents, name = path.replace("-", "_").split(".")
        node = values
        for parent in parents:
            node = node.get(parent, {}) if isinstance(node, dict) else {}
        is_argument = parents == ["env", "kwargs"]
        if not isinstance(node, dict) or not (name in node or is_argument):
            hint = did_you_mean(path.replace("-", "_"), dotted(config))
            raise ValueError(
                f"no setting is called {path!r}; {hint}`amago presets NAME` lists them all"
            )
        node[name] = value
    return from_dict(values)


def dotted(settings: Any, prefix: str = "") -> dict[str, Any]:
    """All settings by their dotted names, as `override` takes them."""
    found: dict[str, Any] = {}
    for item in dataclasses.fields(settings):
        value, name = getattr(settings, item.name), prefix + item.name
        found |= dotted(value, f"{name}.") if dataclasses.is_dataclass(value) else {name: value}
    return found


def differences(old: Config, new: Config) -> dict[str, list[Any]]:
    """[before, after] of every setting that differs, by its dotted name."""
    before, after = dotted(old), dotted(new)
    return {key: [before[key], after[key]] for key in before if before[key] != after[key]}


def _build(cls: type, values: dict[str, Any], where: str) -> Any:
    if not isinstance(values, dict):
        raise ValueError(f"{where} must be an object of settings, got {values!r}")
    hints = typing.get_type_hints(cls)
    names = {item.name for item in dataclasses.fields(cls)}
    constants = _CONSTANTS.items()
    values = {name: v for name, v in values.items() if (f"{where}.{name}", v) not in constants}
    unknown = sorted(set(values) - names)
    if unknown:
        raise ValueError(
            f"{where} has settings that this version of amago does not know: "
            f"{', '.join(unknown)}; another version wrote it: use that one (config.json names its "
            "commit)"
        )
    arguments = {}
    for name, value in values.items():
        if dataclasses.is_dataclass(hints[name]):
            value = _build(typing.cast(type, hints[name]), value, f"{where}.{name}")
        elif isinstance(value, list):
            value = tuple(value)
        arguments[name] = _checked(value, hints[name], f"{where}.{name}")
    return cls(**arguments)


def _checked(value: Any, hint: Any, where: str) -> Any:
    """A value of the annotated type (an int may stand for a float), or a ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and hint is float:
        return float(value)
    if isinstance(value, int | float) and not abs(value) < 2**53:
        raise ValueError(f"{where} must be a finite number, got {value!r}")
    if not _fits(value, hint):
        raise ValueError(f"{where} must be {_spelled(hint)}, got {value!r}")
    return value


def _spelled(hint: Any) -> str:
    """A type in words: auto, wide, or a list of float."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return ", ".join(map(str, options))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_spelled, options))
    if origin is tuple:
        return f"a list of {_spelled(options[0])}"
    return "None" if hint is type(None) else str(getattr(hint, "__name__", hint))


def _fits(value: Any, hint: Any) -> bool:
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is typing.Literal:
        return value in options
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in options)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if options[-1] is Ellipsis:
            return all(_fits(item, options[0]) for item in value)
        return len(value) == len(options) and all(map(_fits, value, options))
    if origin is dict:
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
