"""What becomes of a translation as sentences grow: BLEU by the length of the source, for several models.

    HEEDFUL_DATA=… python benchmarks/translate_lengths.py "RNN=RUN" "attention=RUN" "Transformer=RUN"

On Multi30k's test set by the words of a source, and on the same sentences joined by two, three and four, which are
longer than any the models have learned from. docs/results gets translate_lengths.json and translate_lengths.svg.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from materials import multi30k
from results_file import RESULTS, Table, write_results
from standalone_svg import panels, standalone

from heedful.atomic import atomic_file
from heedful.data.bitext.reading import read_pairs
from heedful.inference.load import load_translator
from heedful.tasks.bleu_bootstrap import Bleu
from heedful.tasks.translate_scores import tokenizer_for
from heedful.views.svg import Curve, line_chart

BEAM = 5
UP_TO = (8, 10, 12, 15, 19, 99)  # words of a source, by which single sentences are put together
JOINED = (1, 2, 3, 4)
Pair = tuple[str, str]
SEEN = (
    "What is seen: the RNN without attention loses 10 points from 7 to 17 words, the other two 4; at 23 words (44 "
    "pairs) all fall. Joined sentences are hard for all three, most for the RNN without attention: where two are "
    "joined it keeps 47 % of its BLEU, the one with attention 57 %, the Transformer 59 %. Of the 29,000 sources they "
    "have learned from, 13 hold two sentences, and the longest has 37 words."
)


def main() -> None:
    """Translate both test sets with every model, and write table and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "translate_lengths.json")
    a = parser.parse_args()
    measured: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name, _, folder in (given.partition("=") for given in a.runs):
        model = load_translator(folder, engine="heedful")
        pairs = [
            (pair.source, pair.target)
            for pair in read_pairs([multi30k("test_2016_flickr.tsv")], *model.folder.names).examples
        ]
        for heading, groups in test_sets(pairs).items():
            measured.setdefault(heading, {})[name] = by_group(model, groups)
    write(a.output, measured)


def test_sets(pairs: Sequence[Pair]) -> dict[str, list[list[Pair]]]:
    """Groups of pairs from short to long, by a heading: single sentences, and joined ones."""
    single: list[list[Pair]] = [[] for _ in UP_TO]
    for pair in pairs:
        single[next(i for i, most in enumerate(UP_TO) if _words(pair[0]) <= most)].append(pair)
    return {
        "Single sentences": [group for group in single if group],
        "Sentences joined by one to four": [joined(pairs, count) for count in JOINED],
    }


def joined(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """All pairs in random order, each so many of them as one."""
    mixed = random.Random(count).sample(list(pairs), len(pairs))
    groups = [mixed[i : i + count] for i in range(0, len(mixed) - count + 1, count)]
    return [(" ".join(source for source, _ in group), " ".join(target for _, target in group)) for group in groups]


def by_group(model: Any, groups: Sequence[Sequence[Pair]]) -> list[dict[str, float]]:
    """For each group its mean length, and BLEU with its interval."""
    found = []
    for group in groups:
        sources, targets = zip(*group, strict=True)
        said = model.translate(sources, beam=BEAM)
        score, low, high = Bleu(said, targets, tokenizer_for(model.folder.names[1])).of(range(len(group)))
        words = sum(map(_words, sources)) / len(group)
        found.append({"pairs": len(group), "words": words, "bleu": score, "low": low, "high": high})
    return found


def _words(text: str) -> int:
    return len(text.split())


def write(path: Path, measured: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]) -> None:
    """A table and a panel for each test set."""
    picture = path.with_suffix(".svg")
    with atomic_file(picture) as file:
        file.write(standalone(panels({f"{heading}: BLEU": _chart(heading, m) for heading, m in measured.items()})))
    write_results(
        path,
        "Translation: quality by length",
        "BLEU on Multi30k's test_2016_flickr, en→de, by the words of the source, with 95 % bootstrap intervals; a beam "
        f"of {BEAM}. Joined sentences are longer than those the models have learned from",
        [_table(heading, models) for heading, models in measured.items()],
        [SEEN, f"![BLEU by source length]({RESULTS.name}/{picture.name})"],
        "NAME=RUN …",
        {"runs": measured},
    )


def _chart(heading: str, models: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    curves = [
        Curve(
            name,
            [(one["words"], one["bleu"]) for one in groups],
            spread=[(one["words"], one["low"], one["high"]) for one in groups],
        )
        for name, groups in models.items()
    ]
    end = max(x for curve in curves for x, _ in curve.points)
    return line_chart(heading, curves, end, x_name="words of the source, in the mean")


def _table(heading: str, models: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    some = next(iter(models.values()))
    columns = [heading.lower(), *(f"{one['words']:.0f} words ({one['pairs']:.0f} pairs)" for one in some)]
    rows = [
        [name, *(f"{one['bleu']:.1f} ({one['low']:.1f} to {one['high']:.1f})" for one in groups)]
        for name, groups in models.items()
    ]
    return Table(columns, rows)


if __name__ == "__main__":
    main()
