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
from amago.envs.recorded import check_recorded
from amago.envs.registry import MakeEnv, single_env
from amago.envs.spaces import BARE_KEY, ActionConverter, ObsConverter
from amago.replay.store import TrajectoryStore
from amago.training.run import Custom, read_header, restore
from amago.types import Array, EnvSpec, Trajectory

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
        rewards, actions = np.asarray(rewards), np.asarray(actions)
        steps = len(rewards)
        if rewards.shape != (steps,) or rewards.dtype.kind not in "biuf":
            raise ValueError(
                f"{where}: expected one number per step as rewards, got {rewards.dtype} of shape "
                f"{list(rewards.shape)}"
            )
        if not np.isfinite(rewards).all():
            raise ValueError(f"{where}: rewards are not finite; leave that episode out")
        flat = self._observations(obs, steps + 1, where)
        expected = (steps, *(self.action.space.shape or ()))
        if actions.shape != expected:
            raise ValueError(
                f"{where}: expected actions of shape {list(expected)} for {steps} rewards, got "
                f"{list(actions.shape)}; record one action of {self.action.space} per step"
            )
        check_recorded(actions, self.action.space, f"{where}: actions")
        rows = self.action.spec.encode(self.action.from_env(actions))
        if self.action.spec.kind != "continuous":
            rows = rows.astype(np.uint8)
        start = np.zeros(steps + 1, np.bool_)
        start[0] = True
        end = np.zeros(steps + 1, np.bool_)
        end[-1] = terminated
        return Trajectory(
            flat,
            np.concatenate([np.zeros_like(rows[:1]), rows]),
            np.concatenate([[0.0], rewards]).astype(np.float32),
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
        for key, values in obs.items():
            rows = np.asarray(values)
            shape = (num_rows, *(self.obs.spaces[key].shape or ()))
            if rows.shape != shape:
                raise ValueError(
                    f"{where}: expected observation {key!r} of shape {list(shape)}, one row more "
                    f"than there are steps, got {list(rows.shape)}; the row after the last action "
                    "belongs to the episode, too"
                )
            check_recorded(rows, self.obs.spaces[key], f"{where}: observation {key!r}")
        return self.obs.flat_batch(obs)


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
    if path.is_file():
        path = path.parent
    elif (path / "data").is_dir():
        path = path / "data"
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
