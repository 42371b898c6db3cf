"""Episodes from .npz files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from amago.datasets.episodes import OBS, Importer
from amago.types import BARE_KEY, Array, Trajectory


def read_npz(path: Path, importer: Importer) -> Iterator[Trajectory]:
    """Episodes of an .npz file, end to end.

    `observations` (or `observations/KEY` for every entry of a Dict) has one row more per
    episode than `actions`, `rewards`, `terminations` and `truncations` (optional) have, or
    as many, with the rows after each step in `next_observations`.
    """
    arrays = _load(path)
    steps = len(arrays["rewards"])
    obs, after = _named(arrays, OBS), _named(arrays, f"next_{OBS}")
    if after and set(after) != set(obs):
        raise ValueError(
            f"{path}: expected next_{OBS} of {sorted(obs)}, as of {OBS}, got {sorted(after)}"
        )
    terminated = arrays["terminations"].astype(bool)
    ends = terminated | arrays.get("truncations", np.zeros(steps)).astype(bool)
    if steps:
        ends[-1] = True  # an episode that the file cuts off is truncated there
    stops = np.flatnonzero(ends) + 1
    per_episode = 0 if after else 1
    rows = {len(values) for values in obs.values()}
    if rows != {steps + per_episode * len(stops)} or any(len(a) != steps for a in after.values()):
        raise ValueError(
            f"{path}: expected {steps + per_episode * len(stops)} rows of {OBS} for {steps} steps "
            f"in {len(stops)} episodes, got {sorted(rows)}; give the last observation of every "
            f"episode, too, or next_{OBS}, one row per step"
        )
    start = 0
    for number, stop in enumerate(stops.tolist()):
        shift = per_episode * number
        window = {key: values[start + shift : stop + shift + per_episode]
                  for key, values in obs.items()}  # fmt: skip
        if after:
            window = {
                key: np.concatenate([values, after[key][stop - 1 : stop]])
                for key, values in window.items()
            }
        yield importer.episode(
            window,
            arrays["actions"][start:stop],
            arrays["rewards"][start:stop],
            bool(terminated[stop - 1]),
            f"{path.name}, episode {number}",
        )
        start = stop


def _load(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, with one row per step where there must be."""
    try:
        data = np.load(path, allow_pickle=False)
        if not isinstance(data, np.lib.npyio.NpzFile):
            raise ValueError("one array without a name")
        with data:
            arrays = {name: data[name] for name in data.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not an .npz file of plain arrays ({error})") from error
    missing = [name for name in ("actions", "rewards", "terminations") if name not in arrays]
    if missing:
        raise ValueError(
            f"{path}: expected arrays actions, rewards and terminations, got {sorted(arrays)}; "
            f"{', '.join(missing)} missing"
        )
    if arrays["rewards"].ndim != 1:
        raise ValueError(
            f"{path}: expected one reward per step, got an array of shape "
            f"{list(arrays['rewards'].shape)}"
        )
    steps = len(arrays["rewards"])
    for name in ("terminations", "truncations"):
        flags = arrays.get(name)
        if flags is not None and (flags.shape != (steps,) or flags.dtype.kind not in "biu"):
            raise ValueError(
                f"{path}: expected {steps} flags as {name}, one per reward, got {flags.dtype} of "
                f"shape {list(flags.shape)}"
            )
    if len(arrays["actions"]) != steps:
        raise ValueError(
            f"{path}: expected {steps} actions, one per reward, got {len(arrays['actions'])}"
        )
    return arrays


def _named(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The arrays called `prefix` or `prefix/KEY`, by key."""
    if prefix in arrays:
        return {BARE_KEY: arrays[prefix]}
    head = f"{prefix}/"
    return {name[len(head) :]: a for name, a in arrays.items() if name.startswith(head)}
