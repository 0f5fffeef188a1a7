"""Texts to make vectors of: pairs that mean the same, perhaps with others that do not, scored pairs, or lines alone.

anchor   positive   negative        pairs, with as many columns negative, negative_2 … as there are, or none
text     pair       score           scored pairs
text                                lines, of a .txt file too
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from heedful.data.labelled.dataset import Columns, Dataset, SentencePair
from heedful.data.labelled.text_rows import PAIRS, find_columns, text_table
from heedful.data.oddities import Oddities
from heedful.data.tables import Row, Table, column_named, text_under
from heedful.errors import HeedfulError
from heedful.text.rows import DataSource

SIDES = (("anchor", "positive"), ("query", "positive"), ("query", "answer"), ("question", "answer"), *PAIRS)
SCORES = ("score", "similarity", "similarity_score", "relatedness", "relatedness_score", "gold_score")
EMPTY = "rows with an empty text, left out"
UNSPACED = "\u0e00"  # Thai: of the scripts that put no spaces between words the first in Unicode
ONE_WORD = "lines of one word, from which little can be learned"


def read_sentence_pairs(path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[SentencePair]:
    """The rows of a table, of JSON lines, or of a plain file of lines; without `labelled`, scores are not looked at.

    Of rows to learn from or to be scored by, one with an empty text is left out and told.
    """
    table = text_table(path, columns, labelled=False, patient=True)
    found, negatives = _columns(table, columns), [name for name in table.columns if name.lower().startswith("negative")]
    score = _score_column(table, columns.label, found) if labelled else None
    read = table.oddities.each(table.rows, lambda row: _sentences(row, found, negatives, score))
    rows = [one for one in read if not labelled or _is_of_use(one, table.oddities)]
    if not rows and not table.oddities.bad:
        raise HeedfulError("there are no rows with a text", where=path, remedy="give rows with a text, or a pair")
    return table.oddities.dataset(rows)


def _is_of_use(one: SentencePair, oddities: Oddities) -> bool:
    """Whether something can be learned from a row; a single word is told."""
    if one.empty:
        oddities.note(EMPTY, one.where)
    elif one.pair is None and _is_one_word(one.text.strip()):
        oddities.note(ONE_WORD, one.where)
    return not one.empty


def _is_one_word(text: str) -> bool:
    return len(text) == 1 or (max(text) < UNSPACED and len(text.split()) == 1)


def _columns(table: Table, asked: Columns) -> Columns:
    """The columns of the two texts; whoever names the text alone gets no pair."""
    lower = [column.lower() for column in table.columns]
    if asked.text is None and asked.pair is None:
        text, pair = next((both for both in SIDES if set(both) <= set(lower)), (None, None))
        if pair is None and "anchor" in lower:
            text = "anchor"
        return find_columns(table, Columns(text, pair), labelled=False)
    return find_columns(table, Columns(asked.text, asked.pair), labelled=False)


def _score_column(table: Table, asked: str | None, found: Columns) -> str | None:
    if asked is not None:
        return column_named(asked, table, "label")
    lower = {column.lower(): column for column in table.columns}
    return None if found.pair is None else next((lower[name] for name in SCORES if name in lower), None)


def _sentences(row: Row, found: Columns, negatives: Sequence[str], score: str | None) -> SentencePair:
    assert found.text is not None
    return SentencePair(
        text_under(found.text, row),
        None if found.pair is None else text_under(found.pair, row),
        tuple(text for name in negatives if (text := text_under(name, row)).strip()),
        None if score is None else _score(row, score),
        row.where,
    )


def _score(row: Row, column: str) -> float:
    try:
        value = float(row.cells.get(column))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        what = f"{row.cells.get(column)!r} under {column!r} is not a number"
        raise HeedfulError(what, where=row.where, remedy="write how similar the two texts are, or leave the row out")
    return value
