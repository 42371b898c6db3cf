"""Attacks on a run's files."""

from __future__ import annotations

import json
import os
import shutil

from test_run_helpers import differing
from test_trust_checkpoints import listing

from torture.target import Attack, Faults, Target, judge, resume

_FILES = (
    "checkpoints/*/model.safetensors", "checkpoints/*/optimizer.safetensors",
    "checkpoints/*/state.json", "checkpoints/*/checksums.json", "checkpoints/latest.json",
    "checkpoints/best.json", "config.json", "metrics.jsonl", "timing.jsonl", "replay/data.mdb",
)  # fmt: skip
_FOLDERS = ("checkpoints", "checkpoints/[0-9]*", "replay")


def damaged(how: str) -> Attack:
    """Damage one file after the other, each in a copy of its own."""

    def damage(target: Target, faults: Faults) -> str | None:
        wrong = [_damage_one(how, name, target, faults) for name in _FILES]
        faults.times += len(_FILES) - 1
        return "; ".join(filter(None, wrong)) or None

    return damage


def _damage_one(how: str, name: str, target: Target, faults: Faults) -> str | None:
    run, rng = target.copy(), target.rng
    path = rng.choice(sorted(run.glob(name)))
    data = bytearray(path.read_bytes())
    if how == "removed":
        path.unlink()
    elif how == "flipped":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    else:
        path.write_bytes(data[: rng.randrange(len(data)) if how == "cut" else 0])
    wrong = judge(target, faults, run, *resume(target, run))
    return wrong and f"{path.relative_to(run)} {how}: {wrong}"


def wrong_pointer(target: Target, faults: Faults) -> str | None:
    """`latest.json` names what is not there, or not inside: the newest checkpoint goes on."""
    run = target.copy()
    names = ("000077", "../../outside", str(target.folder), "", 3, None)
    name = target.rng.choice(names)
    (run / "checkpoints" / "latest.json").write_text(json.dumps({"checkpoint": name}))
    code, said = resume(target, run)
    differs = differing(run, target.whole) if code == 0 else [f"exit code {code}"]
    faults.exact += not differs
    return f"latest.json names {name!r}: {differs}: {said[-300:]}" if differs else None


def pipe(target: Target, faults: Faults) -> str | None:
    """A named pipe in place of a file: refused, and nobody waits for it."""
    run = target.copy()
    path = target.rng.choice(sorted(path for name in _FILES for path in run.glob(name)))
    path.unlink()
    os.mkfifo(path)
    code, said = resume(target, run)
    faults.refused += code == 2
    wanted = code == 2 and "neither a file nor a folder" in said
    return None if wanted else f"{path.relative_to(run)}: exit code {code}: {said[-300:]}"


def link(target: Target, faults: Faults) -> str | None:
    """A file or folder that is a link to something else: refused, and that stays as it is."""
    run, outside = target.copy(), target.folder / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    path = target.rng.choice(sorted(p for name in (*_FILES, *_FOLDERS) for p in run.glob(name)))
    outside.mkdir()
    path.rename(outside / "moved")
    os.symlink(outside / "moved", path)
    before = listing(outside)
    code, said = resume(target, run)
    if listing(outside) != before:
        return f"{path.relative_to(run)}: what it points to was changed"
    faults.refused += code == 2
    return None if code == 2 and "symbolic link" in said else f"exit code {code}: {said[-300:]}"
