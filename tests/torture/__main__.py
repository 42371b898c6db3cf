"""`make torture`."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from amago.saved.header import git_commit
from torture.campaign import Outcome, campaign, tables, write
from torture.runs import KINDS
from torture.sweeps import KIND as SWEEP

_EVERY = [*KINDS, SWEEP]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--faults", type=int, default=3, help="times that each attack is made")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kinds", nargs="+", choices=_EVERY, default=_EVERY)
    parser.add_argument("--write", type=Path, help="the page whose tables are written anew")
    options = parser.parse_args()
    if options.write is not None:
        write(options.write, None)  # a page without a place for them is told now, not at the end
    start, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="amago-torture-"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcome, stopped, commit = Outcome(), "", git_commit()
    try:
        campaign(
            options.kinds, options.kills, options.faults, options.seed, folder,
            lambda text: print(text, flush=True), outcome=outcome,
        )  # fmt: skip
    except KeyboardInterrupt:
        stopped = "stopped early, "
    minutes = (time.monotonic() - start) / 60
    asked = f"`KILLS={options.kills} FAULTS={options.faults}`, seed {options.seed}"
    text = (
        f"{asked}, {time.strftime('%Y-%m-%d')}, commit `{commit}`, {stopped}{minutes:.0f} minutes, "
        f"{len(outcome.failures)} failures.\n\n{tables(outcome)}"
    )
    print(text)
    for failure in outcome.failures:
        print("FAILURE:", failure)
    if not outcome.failures:
        shutil.rmtree(folder)
    if options.write is not None:
        write(options.write, text)
    return int(bool(outcome.failures))


if __name__ == "__main__":
    sys.exit(main())
