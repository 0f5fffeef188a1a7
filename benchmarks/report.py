"""Make docs/results.md from the JSON files under docs/results.

    python benchmarks/report.py            write the page
    python benchmarks/report.py --check    only see whether it is up to date

A file holds "what", "command", "date" and "machine", mostly also "title", "tables" (columns, rows) and "remarks".
Whatever else it holds is shown too: plain values and mappings as a table of names and values, lists of objects as a
table with a row each; all but "runs", from which the tables were made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "results.md"
APART = ("title", "what", "command", "date", "machine", "tables", "remarks", "runs")  # shown in their own way, or not
INTRODUCTION = """# Results

What was measured, how, where and when. This page is made by `python benchmarks/report.py` from the files in
[docs/results](results); the commands expect the data in `$HEEDFUL_DATA` and the models in `$HEEDFUL_MODELS`.
Each section is of the code of its day; what has changed since is in the [changes](../CHANGELOG.md).
"""


def main() -> None:
    """Write the page, or with --check fail if it is not what would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    page = "\n".join([INTRODUCTION, *(section(file) for file in sorted((DOCS / "results").glob("*.json")))])
    if not check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit("docs/results.md is out of date: run python benchmarks/report.py")


def section(file: Path) -> str:
    """The section of one measurement."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    title = found.get("title") or file.stem.replace("_", " ").capitalize()
    parts = [f"## {title}", _sentence(found["what"])]
    parts += [table(t["columns"], t["rows"]) for t in found.get("tables", ())]
    parts += free_values({key: value for key, value in found.items() if key not in APART})
    parts += [str(remark) for remark in found.get("remarks", ())]
    parts += [f"```\n{found['command']}\n```", f"{found['date']}, {found['machine']}"]
    return "\n\n".join(parts) + "\n"


def free_values(values: Mapping[str, Any]) -> Iterator[str]:
    """Tables for what has no table of its own: first the plain values together, then each group of values."""
    plain = {key: value for key, value in values.items() if not isinstance(value, (dict, list))}
    if plain:
        yield table(["", ""], [[_name(key), value] for key, value in plain.items()])
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{_name(key).capitalize()}:"
            yield table(["", ""], [[_name(k), v] for k, v in value.items()])
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield f"{_name(key).capitalize()}:"
            columns = list(dict.fromkeys(column for row in value for column in row))
            yield table([_name(c) for c in columns], [[row.get(c, "") for c in columns] for row in value])
        elif isinstance(value, list) and value:
            yield f"{_name(key).capitalize()}: {cell(value)}"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)


def cell(value: Any) -> str:
    """A value on one line; what is nested deeper is counted, the JSON file has it in full."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{_name(k)}: {cell(v)}" for k, v in value.items())
    if isinstance(value, list):
        short = all(not isinstance(v, (dict, list)) for v in value) and len(str(value)) <= 60
        return ", ".join(map(cell, value)) if short else f"{len(value)} listed in the JSON"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _name(key: str) -> str:
    return str(key).replace("_", " ")


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", ":", "?", "!")) else f"{text}."


if __name__ == "__main__":
    main()
