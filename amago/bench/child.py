"""`python -m amago.bench.child TASK`: one measurement, asked and answered in JSON."""

from __future__ import annotations

import json
import sys

from amago.bench import learner, replay

_TASKS = {"update": learner.update_in_child, "read": replay.read_in_child}

if __name__ == "__main__":
    print(json.dumps(_TASKS[sys.argv[1]](json.load(sys.stdin))))
