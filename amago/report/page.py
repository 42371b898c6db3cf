"""`report.html` of a run: one file without scripts or links that opens anywhere."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from amago.report import panels
from amago.report.evaluations import score_cells, verdict
from amago.report.runs import RunRecord
from amago.report.svg import Line, chart
from amago.report.titles import played_env, run_title

_NAMES = {"random": "random play", "oracle": "oracle, which knows the world"}
REPORT = "report.html"


@dataclass(frozen=True)
class Shown:
    """What was played for the report; a picture that could not be made has a reason instead."""

    film: bytes | None = None
    """A GIF file."""
    film_note: str = ""
    trials: list[tuple[int, float]] = field(default_factory=list)
    """Steps and return of each trial of the filmed rollout."""
    attention: bytes | None = None
    """A PNG file."""
    attention_note: str = ""


def report_page(run: RunRecord, changed: Mapping[str, tuple[Any, Any]], shown: Shown) -> str:
    """The whole page; `changed` are settings with their values and those of the preset."""
    title = run_title(run)
    sections = [
        ("Scores", _scores(run)),
        ("Film", _film(shown)),
        ("Learning", _curves(run)),
        ("Adaptation", _adaptation(run, shown)),
        ("Attention", _picture("png", shown.attention, shown.attention_note)),
        ("Settings that differ from the preset", _settings(run, changed)),
        ("Run", _facts(run)),
    ]
    body = "".join(f"<section><h2>{name}</h2>{html}</section>" for name, html in sections if html)
    return _PAGE.format(title=escape(title), style=_STYLE, name=escape(run.name), body=body)


def _scores(run: RunRecord) -> str:
    result = run.result or {}
    if not result:
        return "<p>The run is not complete; its final test comes at the end.</p>"
    rows = [("agent", result), *(result.get("reference_scores") or {}).items()]
    known = {name for name, _ in rows}
    rows += [
        (name, {"return_mean": sum(blocks)})
        for name, blocks in (result.get("references") or {}).items()
        if name not in known
    ]
    columns = score_cells([scores for _, scores in rows], result.get("episodes"))
    names = [_NAMES.get(name, name) for name, _ in rows]
    cells = list(zip(names, *(column for _, column in columns), strict=True))
    note = (
        f"<p>{result.get('episodes', '?')} rollouts in worlds that were never used before; "
        "±: standard error.</p>"
    )
    warning = verdict(result)
    first = f"<p><strong>{escape(warning)}</strong></p>" if warning else ""
    return first + _table(("", *(label for label, _ in columns)), cells) + note


def _film(shown: Shown) -> str:
    made = _picture("gif", shown.film, shown.film_note)
    if shown.film is None:
        return made
    return made + "<p>What the agent has not perceived yet is under fog. Ticks are rewards.</p>"


def _picture(kind: str, data: bytes | None, note: str) -> str:
    if data is None:
        return f"<p>{escape(note)}</p>" if note else ""
    text = base64.b64encode(data).decode()
    source = f"data:image/{kind};base64,{text}"
    caption = f"<p>{escape(note)}</p>" if note else ""
    return f'<img alt="{escape(note or kind)}" src="{source}">{caption}'


def _curves(run: RunRecord) -> str:
    scores = (run.result or {}).get("reference_scores") or {}
    along, made = panels.CLOCKS[panels.clock_of([run])], []
    for key, training, name in (
        ("return_mean", panels.TRAINING_RETURN, "return per rollout"),
        ("success_rate", panels.TRAINING_SUCCESS, "share of successful rollouts"),
    ):
        lines = {"training": Line(_series(run, training), "faint")}
        lines["evaluation"] = Line(_series(run, (f"eval/{key}",)), "agent")
        points = [point for line in lines.values() for point in line.points]
        ends = [min(x for x, _ in points), max(x for x, _ in points)] if points else []
        for other, known in scores.items():
            if known.get(key) is not None and other in _NAMES:
                lines[_NAMES[other]] = Line([(x, float(known[key])) for x in ends], other)
        if lines["evaluation"].points:
            made.append(chart(lines, along, name))
    losses = {
        key.removeprefix("loss/"): Line(_series(run, (key,)), f"line{index % 6}")
        for index, key in enumerate(panels.keys(run, "loss/"))
        if key != "loss/total"  # weights make it large, and the terms would lie flat beside it
    }
    return "".join([*made, chart(losses, along, "loss terms")])


def _series(run: RunRecord, names: Sequence[str]) -> list[tuple[float, float]]:
    for name in names:
        steps, values = panels.series(run, name)
        if len(steps):
            return list(zip(steps.tolist(), values.tolist(), strict=True))
    return []


def _adaptation(run: RunRecord, shown: Shown) -> str:
    result = run.result or {}
    references, made = result.get("references") or {}, ""
    if panels.shows_adaptation(run, references):
        lines = _first_and_last(panels.adaptation(run), references)
        made += chart(lines, "tenth of a rollout", "return per tenth, mean over worlds")
    returns = panels.trial_returns(run)
    if any(len(earned) > 1 for _, earned in returns):
        lines = _first_and_last(returns, panels.trials_of_others(run))
        made += chart(lines, "trial", "return per trial")
    rates = result.get("success_per_trial") or ()
    if len(rates) > 1:
        made += chart({"final test": _numbered(rates, "agent")}, "trial", "success per trial")
    if len(shown.trials) > 1:
        words = [f"{total:g} in {steps} steps" for steps, total in shown.trials]
        made += f"<p>Return per trial in the film: {escape('; '.join(words))}.</p>"
    return made


def _first_and_last(
    ours: Sequence[tuple[str, Iterable[float]]], others: Mapping[str, Iterable[float]]
) -> dict[str, Line]:
    """The first evaluation faintly, the last one, and other players."""
    kinds = ("faint", "agent")[-len(ours) :]
    lines = {
        name: _numbered(earned, kind) for (name, earned), kind in zip(ours, kinds, strict=True)
    }
    for name, earned in others.items():
        lines[_NAMES.get(name, name)] = _numbered(earned, name if name in _NAMES else "line3")
    return lines


def _numbered(values: Iterable[float], kind: str) -> Line:
    return Line([(n, float(value)) for n, value in enumerate(values, 1)], kind)


def _settings(run: RunRecord, changed: Mapping[str, tuple[Any, Any]]) -> str:
    if not changed:
        return f"<p>None: every setting is that of the preset {escape(run.preset)}.</p>"
    usual = "preset" if run.preset else "default"
    rows = [(name, _text(ours), _text(theirs)) for name, (ours, theirs) in changed.items()]
    return _table(("setting", "this run", usual), rows)


def _facts(run: RunRecord) -> str:
    result = run.result or {}
    seconds = run.seconds
    facts = [
        ("folder", run.name),
        ("environment", played_env(run)),
        ("memory", run.config.get("memory", "")),
        ("commit", run.git_commit or "unknown"),
        ("environment steps", f"{result['env_steps']:,}" if "env_steps" in result else ""),
        ("updates", f"{result['updates']:,}" if "updates" in result else ""),
        ("time", "" if seconds is None else f"{seconds / 60:.1f} minutes"),
    ]
    return _table(("", ""), [(name, str(value)) for name, value in facts if value])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    heading = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return f'<div class="wide"><table>{heading}<tbody>{lines}</tbody></table></div>'


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f26;--soft:#5b6472;--page:#fff;--card:#f5f6f8;
--rule:#d9dde3;--agent:#0072b2;--faint:#9db8cc;--random:#8a8a8a;--oracle:#111;--a:#d55e00;
--b:#009e73;--c:#cc79a7;--d:#e69f00;--e:#56b4e9}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaee;--soft:#a2abb8;--page:#15181d;--card:#1e2228;
--rule:#363c46;--agent:#5fb2e6;--faint:#49637a;--random:#9a9a9a;--oracle:#f2f2f2}}
*{box-sizing:border-box}body{margin:0 auto;padding:1rem;max-width:64rem;background:var(--page);
color:var(--ink);font:16px/1.5 system-ui,sans-serif}h1{font-size:1.5rem;margin:.3rem 0}
h2{font-size:1.1rem;margin:0 0 .6rem}p{margin:.5rem 0;color:var(--soft)}
section{background:var(--card);border-radius:10px;padding:1rem;margin:1rem 0}
img{display:block;max-width:100%;height:auto;border-radius:6px;background:#fff}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .9rem .25rem 0;text-align:left;border-bottom:1px solid var(--rule);
overflow-wrap:anywhere}th{overflow-wrap:normal}td:first-child{min-width:7rem}
figure{display:inline-block;vertical-align:top;width:min(100%,28rem);margin:0 .5rem 1rem 0}
figcaption{color:var(--soft);font-size:.9rem}svg{width:100%;height:auto}
svg text{fill:var(--soft);font-size:12px}svg .mid{text-anchor:middle}svg .end{text-anchor:end}
svg line{stroke:var(--rule)}polyline{fill:none;stroke-width:2}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.85rem;color:var(--soft)}
.legend i{display:inline-block;width:1.2em;height:3px;margin-right:.4em;vertical-align:middle}
""" + "".join(
    f"polyline.{kind}{{stroke:var(--{colour})}}circle.{kind}{{fill:var(--{colour})}}"
    f"i.{kind}{{background:var(--{colour})}}"
    for kind, colour in (
        *((name, name) for name in ("agent", "faint", "random", "oracle")),
        *((f"line{index}", name) for index, name in enumerate(("agent", *"abcde"))),
    )
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>{style}</style></head>
<body><h1>{title}</h1><p>{name}</p>{body}</body></html>
"""
