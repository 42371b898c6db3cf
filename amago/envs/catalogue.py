"""Every domain that `amago/envs/domains` holds: environments by id, presets by name.

Adding a domain means adding a module there that defines `DOMAIN`.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from amago.checks import did_you_mean
from amago.config import MACHINE_SETTINGS, Config, dotted, override
from amago.envs import domains
from amago.envs.domain import Domain
from amago.envs.kinds import check_kinds
from amago.envs.tasks.base import Task
from amago.presets.base import Preset
from amago.presets.sizes import SIZES, Size
from amago.types import ActionSpec

_PAPER = "paper"
"""The size that belongs to a domain rather than to SIZES."""


def _discover() -> tuple[Domain, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(domains.__path__))
    return tuple(import_module(f"{domains.__name__}.{name}").DOMAIN for name in names)


DOMAINS = _discover()
PRESETS: dict[str, Preset] = {name: made for d in DOMAINS for name, made in d.presets.items()}
TASKS: dict[str, tuple[type[Task], Mapping[str, Any]]] = {}
"""Class and fixed arguments of every natively batched task, by its Gymnasium id."""
ENTRY_POINTS: dict[str, tuple[str, Mapping[str, Any]]] = {}
"""Where the class of every other environment is, and the arguments that its id fixes."""
_DOMAIN_OF: dict[str, Domain] = {}
for _domain in DOMAINS:
    for _id, _fixed in _domain.ids.items():
        _DOMAIN_OF[_id] = _domain
        _make = _domain.make
        if isinstance(_make, type) and issubclass(_make, Task):
            TASKS[_id] = (_make, _fixed)
        else:
            _where = _make if isinstance(_make, str) else f"{_make.__module__}:{_make.__qualname__}"
            ENTRY_POINTS[_id] = (_where, _fixed)


def preset(name: str, size: str | None = None) -> Config:
    """The settings that a name stands for; `size` (tiny, small, medium, paper) sets all widths."""
    config = find_preset(name).config
    return config if size is None else override(config, _find_size(size, name).settings())


def changed_settings(config: Config, name: str) -> dict[str, tuple[Any, Any]]:
    """Settings that differ from those of a preset (of no preset: from the defaults), each with
    its value and the preset's; those that say where a run happens are left out."""
    usual = _with_arguments(preset(name) if name in PRESETS else Config())
    return {
        key: (value, usual.get(key))
        for key, value in _with_arguments(config).items()
        if key not in MACHINE_SETTINGS and value != usual.get(key)
    }


def _with_arguments(config: Config) -> dict[str, Any]:
    """All settings by name, each argument of the environment among them."""
    settings = dotted(config)
    arguments = settings.pop("env.kwargs")
    return settings | {f"env.kwargs.{name}": value for name, value in arguments.items()}


def find_preset(name: str) -> Preset:
    if name in PRESETS:
        return PRESETS[name]
    hint = did_you_mean(name, PRESETS)
    raise ValueError(f"no preset is called {name!r}; {hint}`amago presets` lists them all")


def _find_size(size: str, preset_name: str) -> Size:
    """A size by its name; `paper` depends on the preset's domain."""
    paper = next(domain.paper_size for domain in DOMAINS if preset_name in domain.presets)
    known = {**SIZES, **({} if paper is None else {_PAPER: paper})}
    if size not in known:
        raise ValueError(
            f"--size of {preset_name} takes {', '.join(known)}, got {size!r}"
            + ("; the paper has no networks for this domain" if size == _PAPER else "")
        )
    return known[size]


def full_id(env_id: str) -> str:
    """The id that a bare name stands for: RepeatFirstEasy is popgym/RepeatFirstEasy."""
    known = {name.rpartition("/")[2]: name for name in ENTRY_POINTS}
    return known.get(env_id, env_id)


def domain_of(env_id: str) -> Domain:
    """The domain of an environment; one that says nothing for those of others."""
    return _DOMAIN_OF.get(full_id(env_id), Domain({}))


def action_names(env_id: str, action: ActionSpec) -> tuple[str, ...]:
    """One name per discrete action, or per number of another one."""
    known = domain_of(env_id).action_names
    if action.kind == "discrete" and len(known) == action.size:
        return known
    if action.kind == "continuous" and action.size == 2:
        return ("x", "y")
    return tuple(f"action {index}" for index in range(action.size))


def _task_arguments(task_id: str) -> tuple[str, ...]:
    """The arguments that a native task leaves open."""
    cls, fixed = TASKS[task_id]
    return tuple(name for name in inspect.signature(cls).parameters if name not in fixed)


def make_task(task_id: str, **kwargs: Any) -> Task:
    """A native task by its Gymnasium id."""
    unknown = sorted(set(kwargs) - set(_task_arguments(task_id)))
    if unknown:
        raise ValueError(
            f"{task_id} has no argument {', '.join(map(repr, unknown))}; "
            f"it accepts {', '.join(_task_arguments(task_id))}"
        )
    cls, fixed = TASKS[task_id]
    check_kinds(task_id, cls, kwargs)
    return cls(**fixed, **kwargs)
