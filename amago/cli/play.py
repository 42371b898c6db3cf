"""`amago play`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class PlayOptions:
    """Open a page in the browser where trained agents play and can be tried out."""

    agents: tyro.conf.Positional[tuple[str, ...]] = ()
    """Runs and packed agents to offer besides those of the zoo; the first one is shown first."""
    port: int = 8000
    """Where the page is served; 0 takes any free port."""
    host: str = "127.0.0.1"
    """Which address to listen on; the default is reachable from this machine alone."""


def play(arguments: Sequence[str]) -> int:
    options = parse(PlayOptions, arguments, "amago play")
    missing = [name for name in ("starlette", "uvicorn", "websockets") if not _installed(name)]
    if missing:
        raise ValueError(
            f"amago play needs {', '.join(missing)}: pip install 'amago[play]', or in a checkout "
            "of amago pip install -c constraints.txt -e '.[play]'"
        )
    from amago.play.server import listen, serve
    from amago.play.shelf import Shelf
    from amago.process import prepare_process

    prepare_process(1)
    shelf = Shelf(options.agents)
    with listen(options.host, options.port) as listening:
        host = f"[{options.host}]" if ":" in options.host else options.host
        port = listening.getsockname()[1]
        print(f"amago play: http://{host}:{port}/  (Ctrl-C ends it)", flush=True)
        serve(shelf, options.host, listening)
    return 0


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
