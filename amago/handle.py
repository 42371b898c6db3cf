"""A run folder in a user's hands: what it measured, what it learned, and how to go on."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amago.config import Config, from_dict
from amago.report.curves import plot_run
from amago.report.evaluations import verdict
from amago.report.runs import RunRecord, read_run
from amago.saved.header import read_header

if TYPE_CHECKING:
    import pandas as pd

    from amago.agent.terms import Term
    from amago.api import AnyEnv, MakeEncoder, MakeMemory
    from amago.serving.predictor import Predictor


class Run:
    """One run: `amago.train` returns it, `amago.Run(folder)` opens it again.

    A run that was trained with classes of its own needs them again for `policy`, `film` and
    `resume`; `amago.train` passes them on.
    """

    def __init__(
        self,
        run_dir: str | Path,
        *,
        env: AnyEnv | None = None,
        encoder: MakeEncoder | None = None,
        memory: MakeMemory | None = None,
        terms: Sequence[Term] = (),
        trust: bool = False,
    ) -> None:
        self.run_dir = Path(run_dir)
        self._own: dict[str, Any] = {
            "env": env, "encoder": encoder, "memory": memory, "terms": terms, "trust": trust,
        }  # fmt: skip

    @functools.cached_property
    def _header(self) -> dict[str, Any]:
        return read_header(self.run_dir)

    @property
    def config(self) -> Config:
        """The settings of the run."""
        return from_dict(self._header["config"])

    @property
    def seed(self) -> int:
        return int(self._header["seed"])

    @property
    def metrics(self) -> pd.DataFrame | list[dict[str, Any]]:
        """One row per epoch; a DataFrame where pandas is installed, else a list of dicts."""
        rows = self._record().metrics
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows)

    @property
    def result(self) -> dict[str, Any]:
        """The final test, on worlds that training never met."""
        found = self._record().result
        if found is None:
            raise ValueError(
                f"{self.run_dir} is not complete and has no result yet; go on with .resume()"
            )
        return found

    @functools.cached_property
    def policy(self) -> Predictor:
        """The latest checkpoint, ready to act: `run.policy.predict(obs)`."""
        from amago import api

        return api.load(self.run_dir, **self._own)

    def curves(self, path: str | Path | None = None) -> Picture:
        """Draw the learning curves; a notebook shows them."""
        path = Path(path) if path is not None else self.run_dir / "curves.png"
        plot_run(self._record(), path)
        return Picture(path)

    def film(
        self, path: str | Path | None = None, *, seed: int = 0, greedy: bool | None = None
    ) -> Picture:
        """Play one rollout and write it as .mp4 or .gif; a notebook shows it."""
        from amago import api
        from amago.evaluation.film import record_video
        from amago.evaluation.play import PlaySettings, make_policy

        path = Path(path) if path is not None else self.run_dir / "film.mp4"
        chosen = self.policy.policy.greedy if greedy is None else greedy
        settings = PlaySettings.of_seed(seed, episodes=1, greedy=chosen)
        player = make_policy(self.policy.policy.agent, settings)
        make_env = api.named_again(self._own["env"], self.config)
        record_video(player, self.config.env, settings, path, make_env=make_env)
        return Picture(path)

    def resume(self, **arguments: Any) -> Run:
        """Go on from the latest checkpoint; takes what `amago.resume` takes."""
        from amago import api

        return api.resume(self.run_dir, **{**self._own, **arguments})

    def _record(self) -> RunRecord:
        return read_run(self.run_dir)

    def __repr__(self) -> str:
        record = self._record()
        own = self._header.get("custom", {}).get("env")
        name = self.config.env.id if own is None else f"env={own}"
        done, planned = len(record.metrics), self.config.run.epochs
        parts = [repr(str(self.run_dir)), name, f"epoch {done} of {planned}"]
        if record.result is not None:
            random = record.result.get("random_return_mean")
            beside = "" if random is None else f" (random {random:.4g})"
            parts.append(f"return {record.result['return_mean']:.4g}{beside}")
            if verdict(record.result) is not None:
                parts.append("not better than random play")
        return f"Run({', '.join(parts)})"


class Picture(os.PathLike[str]):
    """A file that a notebook shows and everything else may open."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Picture({str(self.path)!r})"

    def _repr_html_(self) -> str:
        kind = {".mp4": "video/mp4", ".gif": "image/gif"}.get(self.path.suffix, "image/png")
        data = f"data:{kind};base64,{base64.b64encode(self.path.read_bytes()).decode()}"
        if kind == "video/mp4":
            return f'<video controls loop src="{data}"></video>'
        return f'<img style="max-width: 100%" src="{data}">'
