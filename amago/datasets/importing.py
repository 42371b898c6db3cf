"""Experience from elsewhere, as trajectories of a run's own spaces.

A run's protected set holds it: never evicted, sampled like everything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from amago.datasets.episodes import Importer
from amago.datasets.npz import read_npz
from amago.envs.registry import MakeEnv, single_env
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.replay.store import TrajectoryStore
from amago.saved.header import read_config, read_header
from amago.saved.trust import check_env
from amago.training.run import Custom
from amago.training.start import restore
from amago.types import BARE_KEY, EnvSpec, Trajectory


def _read_minari(name: str, importer: Importer) -> Iterator[Trajectory]:
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


def _read_replay(folder: Path) -> Iterator[Trajectory]:
    """All trajectories that another run's replay may sample."""
    read_header(folder)
    with TrajectoryStore.open_readonly(folder / "replay") as store:
        for trajectory_id in store.ids.tolist():
            yield store.read(trajectory_id)


def import_into(
    folder: Path,
    kind: str,
    sources: Iterable[str],
    make_env: MakeEnv | None = None,
    *,
    trust: bool = False,
) -> tuple[int, int]:
    """Add data of one kind (npz, minari, run) to a run, all or none; trajectories and steps."""
    config = read_config(folder)
    check_env(folder, config.env, trust=trust, named=make_env is not None)
    with contextlib.closing(single_env(config.env, make_env)) as env:
        importer = Importer(ObsConverter(env.observation_space), ActionConverter(env.action_space))
    sources = list(sources)
    run = restore(folder, custom=Custom(make_env=make_env), trust=trust)
    try:
        before = run.store.num_protected
        steps = 0

        def all_checked() -> Iterator[Trajectory]:
            nonlocal steps
            for source in sources:
                if kind == "run":
                    read_header(Path(source))
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
    return _read_minari(source, importer) if kind == "minari" else _read_replay(Path(source))


def _flat_keys(obs: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if isinstance(obs, Mapping):
        for key, inner in obs.items():
            yield from _flat_keys(inner, (*path, str(key)))
    elif isinstance(obs, tuple):
        for number, inner in enumerate(obs):
            yield from _flat_keys(inner, (*path, str(number)))
    else:
        yield "/".join(path) or BARE_KEY, obs
