"""Experience from elsewhere, as trajectories of a run's own spaces.

A run's protected set holds it: never evicted, sampled like everything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from amago.config import from_dict
from amago.envs.registry import MakeEnv, single_env
from amago.envs.spaces import BARE_KEY, ActionConverter, ObsConverter
from amago.replay.store import TrajectoryStore
from amago.training.run import Custom, read_header, restore
from amago.types import Array, EnvSpec, ObsSpec, Trajectory

OBS = "observations"


class Importer:
    """Turns recorded episodes of one environment into trajectories."""

    def __init__(self, obs: ObsConverter, action: ActionConverter) -> None:
        self.obs, self.action = obs, action

    def episode(
        self,
        obs: Mapping[str, Any],
        actions: Any,
        rewards: Any,
        terminated: bool,
        where: str,
    ) -> Trajectory:
        """One episode of T steps from T+1 observations by flat key, T actions and T rewards."""
        rewards = np.asarray(rewards, np.float32).reshape(-1)
        steps = len(rewards)
        flat = self._observations(obs, steps + 1, where)
        actions = np.asarray(actions)
        expected = (steps, *(self.action.space.shape or ()))
        if actions.shape != expected:
            raise ValueError(
                f"{where}: expected actions of shape {list(expected)} for {steps} rewards, got "
                f"{list(actions.shape)}; record one action of {self.action.space} per step"
            )
        if not (np.isfinite(rewards).all() and np.isfinite(actions.astype(np.float64)).all()):
            raise ValueError(f"{where}: actions or rewards are not finite; leave that episode out")
        try:
            rows = self.action.spec.encode(self.action.from_env(actions))
        except ValueError as error:
            raise ValueError(f"{where}: {error}; the data are of another action space") from error
        if self.action.spec.kind != "continuous":
            rows = rows.astype(np.uint8)
        start = np.zeros(steps + 1, np.bool_)
        start[0] = True
        end = np.zeros(steps + 1, np.bool_)
        end[-1] = terminated
        return Trajectory(
            flat,
            np.concatenate([np.zeros_like(rows[:1]), rows]),
            np.concatenate([np.zeros(1, np.float32), rewards]),
            first=start,
            terminal=end,
            task=where,
        )

    def _observations(self, obs: Mapping[str, Any], num_rows: int, where: str) -> dict[str, Array]:
        if set(obs) != set(self.obs.specs):
            raise ValueError(
                f"{where}: expected observations {sorted(self.obs.specs)}, got {sorted(obs)}; "
                f"call them {OBS}/KEY, or {OBS} alone for a single array"
            )
        converted = self.obs.flat_batch(obs)
        for key, values in converted.items():
            spec = self.obs.specs[key]
            if values.shape != (num_rows, *spec.shape):
                raise ValueError(
                    f"{where}: expected observation {key!r} of shape {[num_rows, *spec.shape]}, "
                    f"one row more than there are steps, got {list(values.shape)}; the row after "
                    "the last action belongs to the episode, too"
                )
            _check_values(key, np.asarray(obs[key]), values, spec, where)
        return converted


def _check_values(key: str, given: Array, values: Array, spec: ObsSpec, where: str) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{where}: observation {key!r} is not finite; leave that episode out")
    if spec.kind != "category" or not given.size:
        return
    wide = given.astype(np.float64)
    kept = (values.astype(np.float64) - values.min() == wide - wide.min()).all()
    if not kept or (values >= spec.size).any():
        raise ValueError(
            f"{where}: expected observation {key!r} within its {spec.size} ids, got "
            f"{int(given.min())}..{int(given.max())}; the data are of another space"
        )


def read_npz(path: Path, importer: Importer) -> Iterator[Trajectory]:
    """Episodes of an .npz file, end to end.

    `observations` (or `observations/KEY` for every entry of a Dict) has one row more per
    episode than `actions`, `rewards`, `terminations` and `truncations` (optional) have, or
    as many, with the rows after each step in `next_observations`.
    """
    try:
        data = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not an .npz file of plain arrays ({error})") from error
    with data:
        arrays = {name: data[name] for name in data.files}
    missing = [name for name in ("actions", "rewards", "terminations") if name not in arrays]
    if missing:
        raise ValueError(
            f"{path}: expected arrays actions, rewards and terminations, got {sorted(arrays)}; "
            f"{', '.join(missing)} missing"
        )
    obs, after = _named(arrays, OBS), _named(arrays, f"next_{OBS}")
    steps = len(arrays["rewards"])
    ends = arrays["terminations"].astype(bool).copy()
    terminated = ends.copy()
    ends |= arrays.get("truncations", np.zeros(steps)).astype(bool)
    if steps:
        ends[-1] = True  # an episode that the file cuts off is truncated there
    stops = np.flatnonzero(ends) + 1
    rows = {len(values) for values in obs.values()}
    per_episode = 0 if after else 1
    if rows != {steps + per_episode * len(stops)}:
        raise ValueError(
            f"{path}: expected {steps + per_episode * len(stops)} rows of {OBS} for {steps} steps "
            f"in {len(stops)} episodes, got {sorted(rows)}; give the last observation of every "
            f"episode, too, or next_{OBS}"
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


def read_minari(name: str, importer: Importer) -> Iterator[Trajectory]:
    """Episodes of a Minari data set on this machine, by its name or the path of its folder."""
    try:
        import minari
    except ImportError as error:
        raise ValueError(
            "`amago import minari` needs Minari, which is not installed: "
            "pip install -c constraints.txt 'amago[minari]'"
        ) from error
    path = Path(name)
    path = path / "data" if (path / "data").is_dir() else path
    try:
        data = minari.MinariDataset(path) if path.exists() else minari.load_dataset(name)
    except (FileNotFoundError, ValueError) as error:
        raise ValueError(
            f"no Minari data set {name!r} on this machine: expected a name that `minari list "
            "local` shows or the folder of a data set; fetch one with "
            f"`minari download {name}`"
        ) from error
    for number, episode in enumerate(data.iterate_episodes()):
        yield importer.episode(
            dict(_flat_keys(episode.observations)),
            episode.actions,
            episode.rewards,
            bool(episode.terminations[-1]),
            f"{name}, episode {number}",
        )


def read_run(folder: Path) -> Iterator[Trajectory]:
    """All trajectories that another run's replay may sample."""
    read_header(folder)
    with TrajectoryStore.open_readonly(folder / "replay") as store:
        for trajectory_id in store.ids.tolist():
            yield store.read(trajectory_id)


def import_into(
    folder: Path, kind: str, sources: Iterable[str], make_env: MakeEnv | None = None
) -> tuple[int, int]:
    """Add data of one kind (npz, minari, run) to a run, all or none; trajectories and steps."""
    config = from_dict(read_header(folder)["config"])
    with contextlib.closing(single_env(config.env, make_env)) as env:
        importer = Importer(ObsConverter(env.observation_space), ActionConverter(env.action_space))
    sources = list(sources)
    run = restore(folder, custom=Custom(make_env=make_env))
    try:
        before = run.store.num_protected
        steps = 0

        def all_checked() -> Iterator[Trajectory]:
            nonlocal steps
            for source in sources:
                if kind == "run":
                    with TrajectoryStore.open_readonly(Path(source) / "replay") as store:
                        store.check_spaces(run.env.spec)
                for trajectory in _read(kind, source, importer):
                    _check_length(trajectory, run.env.spec)
                    steps += trajectory.num_steps
                    yield trajectory

        run.store.append_protected(all_checked())
        run.store.sync()
        return run.store.num_protected - before, steps
    finally:
        run.close()


def _check_length(trajectory: Trajectory, spec: EnvSpec) -> None:
    if spec.horizon is not None and trajectory.num_steps > spec.horizon:
        raise ValueError(
            f"{trajectory.task}: expected at most {spec.horizon} steps, the horizon of "
            f"{spec.name}, got {trajectory.num_steps}; cut the episode, or raise --env.horizon"
        )


def _read(kind: str, source: str, importer: Importer) -> Iterator[Trajectory]:
    if kind == "npz":
        return read_npz(Path(source), importer)
    return read_minari(source, importer) if kind == "minari" else read_run(Path(source))


def _named(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The arrays called `prefix` or `prefix/KEY`, by key."""
    if prefix in arrays:
        return {BARE_KEY: arrays[prefix]}
    head = f"{prefix}/"
    return {name[len(head) :]: a for name, a in arrays.items() if name.startswith(head)}


def _flat_keys(obs: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if isinstance(obs, Mapping):
        for key, inner in obs.items():
            yield from _flat_keys(inner, (*path, str(key)))
    elif isinstance(obs, tuple):
        for number, inner in enumerate(obs):
            yield from _flat_keys(inner, (*path, str(number)))
    else:
        yield "/".join(path) or BARE_KEY, obs
