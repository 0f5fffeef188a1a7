"""The report of a training run: one HTML page made of what the run's folder holds.

It knows no task. Every number in `metrics.jsonl` is drawn under its own name, together with others of its kind; a
name such as `unigram_loss` becomes a dashed level to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError
from heedful.json_files import read_json
from heedful.views.markup import markup
from heedful.views.metrics import Metrics, Series, read_metrics
from heedful.views.numbers import duration, exact
from heedful.views.page import section, table, whole_page, words
from heedful.views.svg import Curve, colour, line_chart, share_bar

CONFIG, METRICS, TIMING, REPORT = "config.toml", "metrics.jsonl", "timing.json", "report.html"


def write_report(run_folder: str | Path) -> Path:
    """Write `report.html` of a run from its settings, metrics and times, as far as there are any; gives its path."""
    folder = Path(run_folder)
    if not any((folder / name).is_file() for name in (CONFIG, METRICS, TIMING)):
        remedy = f"give a folder with a {METRICS}, as training writes it"
        raise HeedfulError("there is no run in this folder", where=folder, remedy=remedy)
    metrics = read_metrics(folder / METRICS)
    timing = read_json(folder / TIMING) if (folder / TIMING).is_file() else {}
    with atomic_file(folder / REPORT) as file:
        file.write(page(folder.resolve().name, metrics, timing, _settings(folder / CONFIG)))
    return folder / REPORT


def page(name: str, metrics: Metrics, timing: Mapping[str, Any], settings: str) -> str:
    """The whole page as HTML."""
    sections = [*_charts(metrics), _values(metrics), _times(timing), _examples(metrics), _notes(metrics)]
    if settings:
        sections.append(section("Settings", f'<div class="card"><pre>{markup(settings)}</pre></div>'))
    return whole_page("Training report", name, _tiles(metrics, timing), sections)


def _tiles(metrics: Metrics, timing: Mapping[str, Any]) -> str:
    facts = {"steps": exact(metrics.last_step)}
    wall = _seconds(timing.get("wall"))
    if wall:
        facts["time"] = duration(wall)
    tokens, speed = metrics.series.get("tokens"), metrics.series.get("tokens_per_second")
    if tokens and tokens.finite:
        facts["tokens"] = exact(tokens.finite[-1])
    if speed and speed.finite:
        facts["tokens/s, median"] = exact(round(median(speed.finite)))
    facts |= {name: timing[name] for name in ("processor", "precision") if isinstance(timing.get(name), str)}
    cells = "".join(f"<div><dt>{markup(name)}</dt><dd>{markup(fact)}</dd></div>" for name, fact in facts.items())
    return f'<dl class="tiles">{cells}</dl>'


def _charts(metrics: Metrics) -> list[str]:
    """A section for each group of names, the numbers that belong to no group last."""
    panels = metrics.panels()
    if not panels:
        return ['<p class="none">There is nothing to draw yet.</p>']
    prefixes = sorted(dict.fromkeys(group[0].prefix for group in panels.values()), key=lambda prefix: not prefix)
    charts = {
        p: "".join(_chart(group, metrics.last_step) for group in panels.values() if group[0].prefix == p)
        for p in prefixes
    }
    return [section(_heading(p), f'<div class="charts">{drawn}</div>') for p, drawn in charts.items()]


def _chart(group: Sequence[Series], end: float) -> str:
    alone = len(group) == 1
    title = words(group[0].leaf if alone else group[0].leaf.rpartition("_")[2])
    curves = [
        Curve(
            words(series.leaf) if alone else words(series.leaf.rpartition("_")[0] or series.leaf),
            list(zip(series.steps, series.values, strict=True)),
            series.is_baseline,
        )
        for series in group
    ]
    return f'<figure class="card"><h3>{markup(title)}</h3>{line_chart(title, curves, end)}</figure>'


def _values(metrics: Metrics) -> str:
    """The last value of everything, beside the first, lowest and highest."""
    by_prefix = groupby(sorted(metrics.series.values(), key=lambda s: (not s.prefix, s.prefix)), lambda s: s.prefix)
    rows = []
    for prefix, group in by_prefix:
        rows.append(f'<tr class="group"><th colspan="6">{markup(_heading(prefix))}</th></tr>')
        rows += [_value_row(series) for series in group]
    if not rows:
        return ""
    names = ("last", "first", "lowest", "highest", "at step")
    head = "<th></th>" + "".join(f'<th class="number" scope="col">{name}</th>' for name in names)
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return section("Last values", f'<div class="card">{body}</div>')


def _value_row(series: Series) -> str:
    finite = series.finite
    numbers = [exact(series.values[-1])]
    numbers += [exact(finite[0]), exact(min(finite)), exact(max(finite))] if finite else ["–"] * 3
    numbers.append(exact(series.steps[-1]))
    cells = "".join(f'<td class="number">{markup(number)}</td>' for number in numbers)
    return f'<tr><th scope="row">{markup(words(series.leaf))}</th>{cells}</tr>'


def _times(timing: Mapping[str, Any]) -> str:
    told = timing.get("parts")
    parts = {name: _seconds(seconds) for name, seconds in told.items()} if isinstance(told, Mapping) else {}
    total = sum(parts.values())
    if not total:
        return ""
    keys = "".join(
        f'<li><i class="key {colour(number)}"></i>{markup(name)} '
        f"<span>{duration(seconds)} · {seconds / total:.1%}</span></li>"
        for number, (name, seconds) in enumerate(parts.items())
        if seconds
    )
    body = f'<div class="card">{share_bar(parts)}<ul class="legend">{keys}</ul>{_times_aside(timing, total)}</div>'
    return section("Where the time went", body)


def _times_aside(timing: Mapping[str, Any], total: float) -> str:
    wall, background = _seconds(timing.get("wall")), _seconds(timing.get("background"))
    said = [f"The parts are {total / wall:.1%} of the wall time."] if wall else []
    if background:
        said.append(f"Beside them {duration(background)} of work in the background.")
    if _seconds(timing.get("sessions")) > 1:
        said.append(f"In {exact(timing['sessions'])} sessions.")
    return f'<p class="aside">{markup(" ".join(said))}</p>' if said else ""


def _examples(metrics: Metrics) -> str:
    """The newest examples open, the earlier ones folded."""
    blocks = [
        f"<details{' open' if number == 0 else ''}><summary>step {exact(step)}</summary>{table(rows)}</details>"
        for number, (step, rows) in enumerate(reversed(metrics.examples))
    ]
    return section("Examples", f'<div class="card">{"".join(blocks)}</div>') if blocks else ""


def _notes(metrics: Metrics) -> str:
    rows = [{"step": exact(step), "note": text} for step, text in metrics.notes]
    return section("Notes", f'<div class="card">{table(rows)}</div>') if rows else ""


def _settings(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise HeedfulError(f"not UTF-8 at byte {error.start}", where=path, remedy="save the file as UTF-8") from error


def _heading(prefix: str) -> str:
    return words(prefix[:1].upper() + prefix[1:]) or "Course of the run"


def _seconds(value: Any) -> float:
    """A number of a file that anybody may have edited; what is none counts as nothing."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e12 else 0.0
