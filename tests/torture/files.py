"""Attacks on a run's files."""

from __future__ import annotations

import os
import shutil

from test_trust_checkpoints import listing

from torture.target import Attack, Faults, Target, judge, resume

_FILES = (
    "checkpoints/*/model.safetensors", "checkpoints/*/optimizer.safetensors",
    "checkpoints/*/state.json", "checkpoints/*/checksums.json", "checkpoints/latest.json",
    "checkpoints/best.json", "config.json", "metrics.jsonl", "timing.jsonl", "replay/data.mdb",
)  # fmt: skip
_FOLDERS = ("checkpoints", "checkpoints/[0-9]*", "replay")


def damaged(how: str) -> Attack:
    def damage(target: Target, faults: Faults) -> str | None:
        run, rng = target.copy(), target.rng
        path = rng.choice(sorted(path for name in _FILES for path in run.glob(name)))
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

    return damage


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
