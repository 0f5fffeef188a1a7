"""The page of a ladder: the table, the learning curves over the seconds, and bars of all that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from heedful.atomic import atomic_file
from heedful.views.bar_chart import Bar, bar_chart
from heedful.views.ladder_quantities import Quantity, quantities
from heedful.views.markup import markup
from heedful.views.metrics import read_metrics
from heedful.views.page import section, table, whole_page, words
from heedful.views.svg import Curve, line_chart

Row = Mapping[str, Any]
NOT_YET = "it was not trained yet"
CURVES_ASIDE = (
    "Models that learn the same share a chart; the losses of different charts are different quantities. Times are "
    "those of steps at the run's mean pace, after its start."
)


def write_ladder_page(path: Path, told: Mapping[str, Any], runs: Mapping[str, Path]) -> Path:
    """Write the page of what ladder.json tells, with the curves of the runs in these folders; gives its path."""
    rows = told["rows"]
    found = quantities(rows)
    parts = [_table(rows, found), _curves(rows, runs), *_bars(rows, found), _reasons(rows, found), _settings(told)]
    with atomic_file(path) as file:
        file.write(whole_page("Ladder of language models", path.resolve().parent.name, _tiles(told), parts))
    return path


def reasons(rows: Sequence[Row], found: Sequence[Quantity]) -> list[tuple[str, str, str]]:
    """What is missing: the model, of which quantities, and why; where training failed, that alone.

    Of a measurement that could not be taken only the first line: there is nothing to remedy where a model of one vector
    a word has no perplexity. ladder.json has it all.
    """
    told: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["reason"]:
            told[row["model"], row["reason"]] = ["all"]
            continue
        for quantity in found:
            if quantity.value(row) is None and (why := quantity.reason(row)):
                told.setdefault((row["model"], why.splitlines()[0]), []).append(quantity.title)
    return [(model, ", ".join(titles), why) for (model, why), titles in told.items()]


def _tiles(told: Mapping[str, Any]) -> str:
    facts = {"budget of each": told["budget"], "size": told["size"], "models": str(len(told["rows"]))}
    facts |= {"corpus": Path(told["settings"]["corpus"]).name}
    cells = "".join(f"<div><dt>{markup(name)}</dt><dd>{markup(fact)}</dd></div>" for name, fact in facts.items())
    return f'<dl class="tiles">{cells}</dl>'


def _table(rows: Sequence[Row], found: Sequence[Quantity]) -> str:
    """A column for each model, as in the terminal: there are fewer of them than quantities."""
    head = "".join(f'<th scope="col">{markup(title)}</th>' for title in ("", *(row["model"] for row in rows)))
    lines = [_line("sees", [row["sees"] for row in rows])]
    lines += [_line(one.title, [_cell(row, one) for row in rows]) for one in found if any(map(one.value, rows))]
    whole = f'<table class="wide"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return section("The table", f'<div class="card">{whole}</div>')


def _line(title: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{markup(title)}</th>{"".join(f"<td>{markup(text)}</td>" for text in cells)}</tr>'


def _cell(row: Row, quantity: Quantity) -> str:
    if row["reason"] and quantity.value(row) is None:
        return "not yet" if row["reason"] == NOT_YET else "failed"
    return quantity.told(row)


def _curves(rows: Sequence[Row], runs: Mapping[str, Path]) -> str:
    """A chart for each loss, with all models that have it."""
    charts: dict[str, list[Curve]] = {}
    end = max((row["training"].get("seconds", 0.0) for row in rows), default=0.0)
    for number, row in enumerate(rows):
        training = row["training"]
        if "steps" not in training:
            continue
        start = training["start_seconds"]
        pace = (training["seconds"] - start) / training["steps"]
        for series in read_metrics(runs[row["model"]] / "metrics.jsonl").series.values():
            if series.prefix == "losses":
                points = [(start + pace * step, y) for step, y in zip(series.steps, series.values, strict=True)]
                charts.setdefault(series.leaf, []).append(Curve(row["model"], points, number=number))
    drawn = [
        f'<figure class="card"><h3>{markup(_heading(name, curves))}</h3>'
        f"{line_chart(name, curves, end, 'seconds')}</figure>"
        for name, curves in charts.items()
    ]
    body = f'<div class="charts">{"".join(drawn)}</div><p class="aside">{CURVES_ASIDE}</p>'
    return section("Learning curves", body) if drawn else ""


def _heading(loss: str, curves: Sequence[Curve]) -> str:
    """The loss and whose it is."""
    models = [curve.label for curve in curves]
    return f"loss of {', '.join(models)}" + ("" if models == [loss] else f": {words(loss)}")


def _bars(rows: Sequence[Row], found: Sequence[Quantity]) -> list[str]:
    """A section of bar charts for each group of quantities."""
    groups = groupby((one for one in found if one.drawn), lambda one: one.group)
    sections = []
    for group, some in groups:
        charts = [_bar_chart(rows, one) for one in some if any(one.value(row) for row in rows)]
        sections.append(section(group, f'<div class="charts">{"".join(charts)}</div>') if charts else "")
    return sections


def _bar_chart(rows: Sequence[Row], quantity: Quantity) -> str:
    bars = [
        Bar(row["model"], number, value.mean, quantity.told(row), value.spread)
        for number, row in enumerate(rows)
        if (value := quantity.value(row))
    ]
    title = f"{quantity.title} ({quantity.better} is better)"
    return f'<figure class="card"><h3>{markup(title)}</h3>{bar_chart(quantity.title, bars)}</figure>'


def _reasons(rows: Sequence[Row], found: Sequence[Quantity]) -> str:
    told = [{"model": model, "what": what, "why": why} for model, what, why in reasons(rows, found)]
    return section("What is missing, and why", f'<div class="card names">{table(told)}</div>') if told else ""


def _settings(told: Mapping[str, Any]) -> str:
    rows = [{"setting": name, "value": value} for name, value in told["settings"].items()]
    return section("Settings", f'<div class="card">{table(rows)}</div>')
