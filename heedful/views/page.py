"""The frame of a page, and the pieces that pages have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heedful.views.markup import markup
from heedful.views.numbers import exact
from heedful.views.style import STYLE

# Nothing but the page's own style may be used: no script, no picture, no network.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def whole_page(kind: str, name: str, header: str, sections: Iterable[str]) -> str:
    """A page as HTML, with the name in its head and the sections, empty ones left out, one after the other."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{markup(name)} · {markup(kind.lower())}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1><small>{markup(kind)}</small>{markup(name)}</h1>{header}</header>\n"
        f"<main>\n{chr(10).join(filter(None, sections))}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, body: str) -> str:
    """A part of a page under a heading."""
    return f"<section><h2>{markup(title)}</h2>{body}</section>"


def words(name: str) -> str:
    """A name out of a program as a reader writes it."""
    return name.replace("_", " ").replace(".", ": ")


def table(rows: Sequence[Any]) -> str:
    """Objects as a table with their keys as columns; anything else as one cell a row."""
    objects = [row if isinstance(row, Mapping) else {"": row} for row in rows]
    columns = list(dict.fromkeys(key for row in objects for key in row))
    head = "".join(f'<th scope="col">{markup(words(column))}</th>' for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td class=text>{markup(_cell(row.get(column)))}</td>' for column in columns)}</tr>"
        for row in objects
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any, between: str = " · ") -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return exact(value)
    if isinstance(value, Mapping):
        return between.join(f"{key} {_cell(item, ' ')}" for key, item in value.items())
    if isinstance(value, list):
        return between.join(_cell(item, " ") for item in value)
    return str(value)
