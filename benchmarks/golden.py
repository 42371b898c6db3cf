"""Tiny runs of everything, compared number for number between two commits on this machine.

    python benchmarks/golden.py compare OLD [NEW] [--only NAME …]

`OLD` and `NEW` are commits; without `NEW` the working tree is compared. Every case is a run of a
few updates: presets, memories, action kinds, ablations. Compared are all numbers of
`metrics.jsonl` and `result.json` and the values of all weights, whatever they are called. Hashes
depend on the processor and the versions of torch and numpy, so this is no test for CI.

    python benchmarks/golden.py record OUT.json [--only NAME …]

records the cases with the amago that Python imports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DELIVERY, MAZE, ROOM = "package-delivery", "maze-runner", "dark-key-to-door"

SHRINK = {
    "run.epochs": 3,
    "run.updates_per_epoch": 3,
    "run.eval_interval": 2,
    "run.eval_episodes": 4,
    "run.final_eval_episodes": 6,
    "run.threads": 1,
    "env.num_lanes": 4,
    "env.eval_lanes": 3,
    "replay.batch_size": 5,
    "replay.capacity": 7,
}
"""Settings of every case; those that a commit does not have are left out."""
FEW_ROWS = {"replay.batch_rows": 100, "rollout.steps_per_epoch": None}
"""Also settings of presets that count their batches in rows."""

RENAMED = {
    "agent.bc_filter": "terms.cloning.filter",
    "loss/bc": "loss/cloning",
    "policy/bc_accepted": "cloning/accepted",
}
"""Settings and metrics that had another name in earlier commits."""

UNTIMED = ("seconds",)
"""What differs from run to run."""


@dataclass(frozen=True)
class Case:
    preset: str
    ablate: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()
    """Arguments of the environment, in place of the preset's."""

    @property
    def name(self) -> str:
        changes = [f"{key}={value}" for key, value in (*self.settings, *self.kwargs)]
        return " ".join([self.preset, *filter(None, [self.ablate]), *changes])


T_MAZE = (("corridor", 12),)
SMALL_ROAD = (("road", 12), ("horizon", 30))
SMALL_MAZE = (("size", 11), ("horizon", 25))
ABLATIONS = (
    "no-relabeling", "relabel-all", "no-memory", "no-multi-gamma", "no-filtered-bc", "no-popart",
    "no-planning", "no-multi-goal", "no-importance-sampling", "gru", "pre-ln", "no-leaky-relu",
    "no-extra-norms", "no-sigma-reparam", "naive", "wide-gammas", "gcsl", "world-model",
    "no-world-model", "critics-in-actor-loss", "frozen-encoder-in-actor-loss", "target-memory",
    "separate-memory",
)  # fmt: skip

CASES = (
    Case(ROOM, kwargs=(("grid", 3), ("trial_limit", 8), ("horizon", 20))),
    Case(ROOM, "gru"),
    Case(ROOM, "no-memory"),
    Case(ROOM, "world-model"),
    Case(ROOM, settings=(("replay.context_length", 16),)),
    Case(ROOM, settings=(("transformer.position", "learned"),)),
    Case(ROOM, settings=(("transformer.position", "rope"),)),
    Case(ROOM, settings=(("heads.critic", "two_hot"),)),
    Case(ROOM, settings=(("heads.critic", "hl_gauss"),)),
    Case(ROOM, settings=(("agent.bc_filter", "exponential"), ("agent.n_step", 3),
                         ("agent.trace", 0.0))),
    Case("t-maze", kwargs=T_MAZE),
    Case("t-maze-1000", settings=(("env.ids", ("amago/TMaze-v0?corridor=9",
                                               "amago/TMaze-v0?corridor=14")),)),
    Case("wind"),
    Case("wind", "no-memory"),
    Case("wind", "world-model"),
    Case("masked-recall"),
    Case("bit-recall"),
    Case("pixel-recall"),
    Case("multi-task"),
    Case("popgym"),
    Case("half-cheetah-velocity"),
    Case("metaworld", settings=(("env.trials", 1),)),
    Case("crafter", kwargs=(("horizon", 40),)),
    Case("gym"),
    Case("gym", settings=(("env.id", "Pendulum-v1"),)),
    Case("gym", settings=(("env.trials", 2),)),
    Case("gym", settings=(("env.num_workers", 2),)),
    Case(MAZE, kwargs=SMALL_MAZE),
    Case(MAZE, kwargs=(*SMALL_MAZE, ("continuous", True), ("rewired", True))),
    Case(DELIVERY, kwargs=SMALL_ROAD),
    *(Case(DELIVERY, name, kwargs=SMALL_ROAD) for name in ABLATIONS),
)  # fmt: skip


def shrink(case: Case) -> Any:
    """The preset's settings, made tiny."""
    import amago
    from amago.config import override, to_dict
    from amago.presets.ablations import ablate

    config = amago.preset(case.preset)
    if case.kwargs:
        config = replace(config, env=replace(config.env, kwargs=dict(case.kwargs)))
    if case.ablate:
        config = ablate(config, [case.ablate])
    known = to_dict(config)
    by_rows = known["replay"].get("batch_rows") is not None
    small = SHRINK | FEW_ROWS if by_rows else SHRINK
    fits = {key: value for key, value in small.items() if _has(known, key)}
    given = {key if _has(known, key) else RENAMED.get(key, key): v for key, v in case.settings}
    return override(config, {**fits, **given})


def _has(values: dict[str, Any], key: str) -> bool:
    group, _, name = key.partition(".")
    return name in values.get(group, {})


def record(cases: Sequence[Case], out: Path) -> None:
    """Run the cases and write what they came to."""
    import amago

    print(f"amago of {Path(amago.__file__).parent}", flush=True)
    results: dict[str, Any] = {}
    for case in cases:
        try:
            config = shrink(case)
        except ValueError as error:
            print(f"  {case.name}: not in this commit ({error})", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = Path(folder) / "run"
            amago.train(config, seed=3, run_dir=run)
            results[case.name] = read(run)
            out.write_text(json.dumps(results))  # what there is, should somebody stop it
        print(f"  {case.name}", flush=True)


def read(run: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    last = max(run.glob("checkpoints/*/model.safetensors"))
    tensors = load_file(last).values()
    hashes = [hashlib.blake2b(t.tobytes(), digest_size=8).hexdigest() for t in tensors]
    result = json.loads((run / "result.json").read_text())
    return {
        "metrics": [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()],
        "result": {key: value for key, value in result.items() if key not in UNTIMED},
        "weights": sorted(hashes),
    }


def record_commit(commit: str | None, arguments: list[str], folder: Path) -> dict[str, Any]:
    """The cases as a commit plays them; None is the working tree."""
    out = folder / f"{commit or 'tree'}.json".replace("/", "-")
    source = ROOT
    if commit is not None:
        source = folder / commit.replace("/", "-")
        command = ["git", "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(source), commit]
        subprocess.run(command, check=True)
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "record", str(out), *arguments]
    try:
        subprocess.run(command, check=True, env=environment, cwd=folder)
    finally:
        if commit is not None:
            remove = ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(source)]
            subprocess.run(remove, check=True)
    loaded: dict[str, Any] = json.loads(out.read_text())
    return loaded


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Every place in which two records differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        old, new = ({RENAMED.get(k, k): v for k, v in one.items()} for one in (old, new))
        found = [f"{where}/{key}: only before" for key in old if key not in new]
        found += [f"{where}/{key}: only now" for key in new if key not in old]
        for key in old:
            if key in new:
                found += differences(old[key], new[key], f"{where}/{key}")
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        if where.endswith("/weights") and old != new:
            changed = len(set(old) - set(new))
            return [f"{where}: {changed} of {len(old)} tensors differ"]
        pairs = enumerate(zip(old, new, strict=True))
        return [line for n, pair in pairs for line in differences(*pair, f"{where}[{n}]")]
    return [] if old == new or (old != old and new != new) else [f"{where}: {old} → {new}"]


def compare(old: dict[str, Any], new: dict[str, Any]) -> int:
    same = 0
    for name in old:
        if name not in new:
            print(f"{name}: not recorded now")
            continue
        found = differences(old[name], new[name])
        same += not found
        if found:
            print(f"{name}: {len(found)} differences")
            for line in found[:4]:
                print(f"    {line}")
    for name in new:
        if name not in old:
            print(f"{name}: not recorded before")
    print(f"{same} of {len(old)} cases identical")
    return 0 if same == len(old) else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("record", "compare"):
        options = verbs.add_parser(verb)
        options.add_argument("--only", nargs="+", default=[], help="cases whose names contain this")
    verbs.choices["record"].add_argument("out", type=Path)
    verbs.choices["compare"].add_argument("old", help="a commit, or a file that `record` wrote")
    verbs.choices["compare"].add_argument("new", nargs="?", help="a commit; unset: this tree")
    arguments = parser.parse_args()
    only: list[str] = arguments.only
    if arguments.verb == "record":
        chosen = [c for c in CASES if not only or any(part in c.name for part in only)]
        record(chosen, arguments.out)
        return 0
    passed = ["--only", *only] if only else []
    with tempfile.TemporaryDirectory() as folder:
        if Path(arguments.old).is_file():
            old = json.loads(Path(arguments.old).read_text())
            old = {n: v for n, v in old.items() if not only or any(part in n for part in only)}
        else:
            old = record_commit(arguments.old, passed, Path(folder))
        return compare(old, record_commit(arguments.new, passed, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
