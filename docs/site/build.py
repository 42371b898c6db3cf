"""Builds the site: the repository's Markdown, an API reference, and MkDocs over both.

    python docs/site/build.py [FOLDER]          # build/site unless given

Pages keep their places, so their links hold here as they do in the repository. Nothing is fetched
from the internet, and a broken link ends the build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = (
    "*.md", "LICENSE", "docs/**/*", "results/**/*.md", "results/**/*.png", "results/*/data/*",
    "examples/*", "amago/**/*.py",
)  # fmt: skip
API = {
    "Train, load, evaluate": (
        "amago.api.train", "amago.api.resume", "amago.api.load", "amago.api.evaluate",
        "amago.check.any_env.check_env", "amago.api.report", "amago.handle.Run",
    ),
    "Settings": ("amago.config.Config", "amago.config.override", "amago.envs.catalogue.preset"),
    "A trained policy": ("amago.serving.predictor.Predictor",),
    "Films": (
        "amago.evaluation.film.FilmSettings", "amago.evaluation.film.record_video",
        "amago.evaluation.play.PlaySettings",
    ),
    "Records": (
        "amago.types.Timestep", "amago.types.Trajectory", "amago.types.Batch",
        "amago.types.EnvSpec", "amago.types.VectorEnv", "amago.types.Policy",
    ),
    "Instructions": ("amago.goals.GoalSpec", "amago.goals.advance"),
    "Your own parts": (
        "amago.nets.memory.interface.Memory", "amago.nets.timestep.TimestepEncoder",
        "amago.agent.terms.term.Term", "amago.envs.tasks.base.Task",
    ),
}  # fmt: skip
"""What people call, by topic; everything else is reached from the architecture page."""


def api_page() -> str:
    """The reference, made of docstrings by mkdocstrings."""
    parts = [
        "# API",
        "\nFrom the docstrings. `amago.NAME` is short for the names of `amago.api`.\n",
    ]
    for topic, names in API.items():
        parts += [f"\n## {topic}\n", *(f"\n::: {name}\n" for name in names)]
    return "".join(parts)


def gather(pages: Path) -> None:
    """Copy the pages and what they show."""
    shutil.rmtree(pages, ignore_errors=True)
    for pattern in COPIED:
        for path in ROOT.glob(pattern):
            place = pages / path.relative_to(ROOT)
            if path.is_file() and "site" not in path.relative_to(ROOT).parts:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
    (pages / "docs" / "api.md").write_text(api_page(), encoding="utf-8")


def build(pages: Path, site: Path) -> int:
    """Build the site; not 0 if anything is wrong with it."""
    text = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    settings = pages.parent / "mkdocs.yml"
    settings.write_text(text.replace("PAGES", str(pages)).replace("ROOT", str(ROOT)))
    # Not --quiet, which would not count warnings, and so would let broken links pass.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(
        [*command, "-f", str(settings), "-d", str(site)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=False,
    )
    return done.returncode


def main() -> int:
    site = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "site"
    pages = site.with_name(f"{site.name}-pages")
    gather(pages)
    code = build(pages, site)
    if not code:
        print(f"site: {site / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
