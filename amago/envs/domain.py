"""What a domain is made of; `amago/envs/domains` has one file or folder for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amago.presets.base import Preset
from amago.presets.sizes import Size


@dataclass(frozen=True)
class Domain:
    """Environments of one kind, and the presets that train on them."""

    presets: Mapping[str, Preset]
    """By name. `NAME/paper` follows the paper's Tables 3 and 4."""
    make: Callable[..., Any] | str = ""
    """Class of the environment: a Task, or a gymnasium.Env. `module:Class` is imported late;
    use it where the import needs an optional package."""
    ids: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Gymnasium ids, each with the arguments that it fixes."""
    paper_size: Size | None = None
    """Widths of the networks in the paper's Table 3."""
    action_names: tuple[str, ...] = ()
    """One for each discrete action, for films and the playground."""
    picture: str = ""
    """What the colours of its pictures mean, for people who see them for the first time."""
    sees: str = ""
    """What the numbers of an observation are, in their order."""
    extra: str = ""
    """The optional packages that its environments need: amago[EXTRA]."""
