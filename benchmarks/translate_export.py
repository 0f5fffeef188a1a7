"""What CTranslate2 says with exported weights, beside what the model itself says.

    HEEDFUL_DATA=… python benchmarks/translate_export.py RUN…

The test set of Multi30k by greedy search: how many translations are the same, and how far the log-probabilities of
those are apart. Once with the exported folder as it is, and once as `--engine ctranslate2` uses it, which suppresses
the symbols that are never said.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from materials import multi30k
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.translation_folder import load_translation
from heedful.data.bitext.reading import read_pairs
from heedful.decoding import Beam
from heedful.export.ctranslate2_folder import ctranslate2_module, ctranslate2_vocabulary, export_ctranslate2
from heedful.inference.load import load_translator, model_path
from heedful.inference.translator import Translator

Said = list[tuple[str, float]]  # translations with their log-probabilities


def main() -> None:
    """Translate in all ways, compare, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "translate_export.json")
    a = parser.parse_args()
    columns = ["model", "CTranslate2", "sentences", "same translation", "log-probabilities differ by at most"]
    write_results(
        a.output,
        "Translation: export to CTranslate2",
        "Multi30k's test_2016_flickr by greedy search of heedful and of CTranslate2 with the exported weights, in fp32",
        [Table(columns, [row for run in a.runs for row in compared(run)])],
        [
            "Log-probabilities are compared where the translations are the same. `--engine ctranslate2` suppresses "
            "symbols that are never said, such as [PAD]; CTranslate2 then gives their share to the others, our own "
            "search does not."
        ],
        arguments="RUN…",
    )


def compared(run: Path) -> list[list[Any]]:
    """The rows of a model."""
    mine = load_translator(run, "cpu", "heedful")
    texts = [pair.source for pair in read_pairs([multi30k("test_2016_flickr.tsv")], *mine.folder.names).examples]
    right = searched(mine, texts)
    others = {
        "exported": exported(run, texts),
        "as engine": searched(load_translator(run, "cpu", "ctranslate2"), texts),
    }
    rows = []
    for name, found in others.items():
        apart = [abs(a[1] - b[1]) for a, b in zip(right, found, strict=True) if a[0] == b[0]]
        rows.append([run.resolve().name, name, len(texts), f"{len(apart) / len(texts):.1%}", f"{max(apart):.1e}"])
    return rows


def searched(translator: Translator, texts: Sequence[str]) -> Said:
    """By heedful's interface."""
    return [(some[0].text, some[0].log_probability) for some in translator.hypotheses(texts, Beam(1))]


def exported(run: Path, texts: Sequence[str]) -> Said:
    """By CTranslate2 alone."""
    folder = load_translation(model_path(run))
    config = folder.model.config
    pieces = ctranslate2_vocabulary(folder.sides.source, config.source_vocab_size)
    numbers = {p: i for i, p in enumerate(ctranslate2_vocabulary(folder.sides.target, config.target_vocab_size))}
    sources = [[pieces[i] for i in one.ids[1:-1]] for one in folder.sides.source.encode_batch(texts, offsets=False)]
    with tempfile.TemporaryDirectory() as scratch:
        export_ctranslate2(folder, Path(scratch) / "model")
        engine = ctranslate2_module().Translator(str(Path(scratch) / "model"), compute_type="float32")
    # Its default least length of 1 suppresses the end symbol in the first step, which changes the probabilities there.
    asked = {"beam_size": 1, "length_penalty": 0, "min_decoding_length": 0, "max_batch_size": 64}
    found = engine.translate_batch(sources, return_scores=True, **asked)
    return [(folder.sides.target.decode([numbers[p] for p in one.hypotheses[0]]), one.scores[0]) for one in found]


if __name__ == "__main__":
    main()
