"""What CTranslate2 says with exported weights, beside what the model itself says.

    HEEDFUL_DATA=… python benchmarks/translate_export.py RUN…

The test set of Multi30k by greedy search and by a beam: how many translations are the same, and how far the
log-probabilities of those are apart.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from materials import multi30k
from results_file import RESULTS, Table, write_results

from heedful.data.parallel import read_pairs
from heedful.decoding import Beam
from heedful.inference.load import load_translator
from heedful.inference.translator import ENGINES

BEAMS = (1, 5)


def main() -> None:
    """Translate with both engines, compare, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "translate_export.json")
    a = parser.parse_args()
    write_results(
        a.output,
        "Translation: export to CTranslate2",
        "Multi30k's test_2016_flickr by heedful and by CTranslate2 with the exported weights, both in fp32",
        [Table(["model", "beam", "sentences", "same translation", "log-probabilities differ by at most"],
               [compared(run, beam) for run in a.runs for beam in BEAMS])],
        ["Log-probabilities are compared where the translations are the same."],
        arguments="RUN…",
    )  # fmt: skip


def compared(run: Path, beam: int) -> list[str | int]:
    """One row of the table."""
    mine, other = (load_translator(run, "cpu", engine) for engine in ENGINES)
    texts = [pair.source for pair in read_pairs([multi30k("test_2016_flickr.tsv")], *mine.folder.names).examples]
    found = [[some[0] for some in engine.hypotheses(texts, Beam(beam))] for engine in (mine, other)]
    same = [(a, b) for a, b in zip(*found, strict=True) if a.text == b.text]
    apart = max(abs(a.log_probability - b.log_probability) for a, b in same)
    return [run.resolve().name, beam, len(texts), f"{len(same) / len(texts):.1%}", f"{apart:.1e}"]


if __name__ == "__main__":
    main()
