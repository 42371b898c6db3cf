"""Observations from other people's loops: one or many, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from amago.envs.leaves import Leaf
from amago.envs.spaces import ObsConverter
from amago.types import Array

_NUMBERS = {"real": "biuf", "mask": "biuf", "category": "biu", "image": "biu"}
"""Kinds of dtypes that each kind of observation may come in."""


def read(converter: ObsConverter, obs: Any) -> tuple[dict[str, Array], bool]:
    """An observation, or a batch of them with a leading [N], as arrays [N, ...]; whether it was
    a single one."""
    if isinstance(obs, list) and obs and not converter.is_bare:
        return converter.stack([_checked(converter, one, single=True) for one in obs]), False
    single = _is_single(converter, obs)
    _checked(converter, obs, single)
    return (converter.stack([obs]) if single else converter.batch(obs)), single


def _is_single(converter: ObsConverter, obs: Any) -> bool:
    """Whether an observation has the shapes of the space, without a leading [N]."""
    sizes: dict[str, int | None] = {}
    for key, leaf in converter.leaves.items():
        shape, wanted = _shape(leaf, _find(key, leaf, obs)), _space_shape(leaf)
        if shape == wanted:
            sizes[key] = None
        elif len(shape) == len(wanted) + 1 and shape[1:] == wanted:
            sizes[key] = shape[0]
        else:
            raise ValueError(
                f"observation {key!r}: expected shape {list(wanted)}, or "
                f"[{', '.join(['N', *map(str, wanted)])}] for N environments at once, got "
                f"{list(shape) or type(obs).__name__}"
            )
    if len(set(sizes.values())) > 1:
        raise ValueError(
            "expected all parts of the observation to be of equally many environments, got "
            + ", ".join(f"{key}: {'one' if n is None else n}" for key, n in sizes.items())
        )
    return next(iter(sizes.values())) is None


def _checked(converter: ObsConverter, obs: Any, single: bool) -> Any:
    """The same observation, or a ValueError that names the part that cannot be meant."""
    for key, leaf in converter.leaves.items():
        value = _find(key, leaf, obs)
        if single and _shape(leaf, value) != _space_shape(leaf):
            raise ValueError(
                f"observation {key!r}: expected shape {list(_space_shape(leaf))}, got "
                f"{list(_shape(leaf, value))}"
            )
        if leaf.characters is None:
            _check_numbers(key, leaf, np.asarray(value))
    return obs


def _check_numbers(key: str, leaf: Leaf, values: Array) -> None:
    kind = leaf.spec.kind
    if values.dtype.kind not in _NUMBERS[kind]:
        wanted = {"image": "uint8 pixels 0..255", "category": "whole numbers"}.get(kind, "numbers")
        hint = "; multiply by 255 and cast it" if kind == "image" else ""
        raise ValueError(f"observation {key!r}: expected {wanted}, got {values.dtype}{hint}")
    if kind == "real":
        if not np.isfinite(values).all():
            raise ValueError(f"observation {key!r}: expected finite numbers, got {values}")
        return
    ids = values.astype(np.int64) - leaf.start
    limit = {"image": 256, "mask": 2}.get(kind, leaf.spec.size)
    if kind != "mask" and ids.size and (ids.min() < 0 or ids.max() >= limit):
        low = np.asarray(leaf.start).min()
        raise ValueError(
            f"observation {key!r}: expected values from {low} to {low + limit - 1}, got "
            f"{values.min()} to {values.max()}"
        )


def _find(key: str, leaf: Leaf, obs: Any) -> Any:
    try:
        return leaf.find(obs)
    except (KeyError, IndexError, TypeError) as error:
        got = f"the keys {sorted(obs)}" if isinstance(obs, dict) else type(obs).__name__
        raise ValueError(
            f"expected an observation with the part {key!r}, got {got}; pass what the environment "
            "returned"
        ) from error


def _shape(leaf: Leaf, value: Any) -> tuple[int, ...]:
    """A text counts as one number."""
    if leaf.characters is not None:
        return () if isinstance(value, str) else (len(value),)
    return np.shape(value)


def _space_shape(leaf: Leaf) -> tuple[int, ...]:
    return () if leaf.characters is not None else tuple(leaf.spec.shape)
