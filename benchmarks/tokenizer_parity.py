"""Compare our tokens with Hugging Face's, on real text and on made-up Unicode, and explain every difference.

    HEEDFUL_DATA=… HEEDFUL_MODELS=… python benchmarks/tokenizer_parity.py -o docs/results/tokenizer_parity.json

Ids against the pure-Python `BertTokenizerLegacy`, ids and offsets against the fast `BertTokenizer`. A difference counts
as explained when it is gone once the characters named as its cause are taken out of the text.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import platform
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import tokenizers
import transformers
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from transformers import BertTokenizer
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from heedful.text.documents import read_documents
from heedful.text.tokenizer import Tokenizer

CORPORA = {"en": "corpus_enwiki/enwiki.jsonl.gz", "zh": "corpus_zhwiki/zhwiki_sample.jsonl.gz"}
VOCABULARIES = {"uncased": "en", "cased": "en", "chinese": "zh"}  # and the corpus each is tried on
EXAMPLES_LISTED = 40
CAUSES = {
    "unassigned": "a code point that is no character: pure Python drops it like a control, the library keeps it",
    "extension E": "U+2B820–U+2B91F: the library's range of ideographs of extension E begins 256 code points late",
    "newer Unicode": "punctuation, accent or format character newer than the library's tables, or moved since",
    "composition": "pure Python composes accents (NFC) before it splits, the library does not; matters if cased",
    "final sigma": "Python lower-cases a capital sigma at the end of a word to ς, the library always to σ",
}


def main() -> None:
    """Run all comparisons, write the report, and fail if a difference has no explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=50_000, help="of each corpus, against pure Python")
    parser.add_argument("--strings", type=int, default=20_000, help="made by hypothesis, against pure Python")
    parser.add_argument("--fast-lines", type=int, default=200_000, help="of both corpora, against the fast one")
    arguments = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)

    strings = made_up_strings(arguments.strings)
    comparisons = []
    for vocabulary, corpus in VOCABULARIES.items():
        pure = PurePython(vocabulary)
        lines = corpus_lines(corpus, arguments.lines)
        comparisons.append(pure.compare(f"{corpus} corpus, {vocabulary} vocabulary, pure Python", lines, listed=number))
        comparisons.append(
            pure.compare(f"hypothesis, {vocabulary} vocabulary, pure Python", strings, listed=ascii_text)
        )
    for vocabulary, corpus in (("uncased", "en"), ("chinese", "zh")):
        lines = corpus_lines(corpus, arguments.fast_lines // 2)
        comparisons.append(compare_with_fast(f"{corpus} corpus, {vocabulary} vocabulary, fast", vocabulary, lines))
    write_report(arguments.output, comparisons)
    if any(comparison["unexplained"] for comparison in comparisons):
        sys.exit("some differences have no explanation")


def corpus_lines(corpus: str, count: int) -> Iterator[str]:
    """The first `count` lines of a corpus under $HEEDFUL_DATA."""
    documents = read_documents(Path(os.environ["HEEDFUL_DATA"]) / CORPORA[corpus])
    return islice((line for document in documents for line in document), count)


def made_up_strings(count: int) -> list[str]:
    """Strings of any Unicode, of mixed scripts, and of words with signs between them; the same in every run."""
    scripts = [(0x20, 0x7F), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x2000, 0x206F), (0x3000, 0x30FF)]
    scripts += [(0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF00, 0xFFEF), (0x1F300, 0x1FAFF)]
    mixed = st.one_of([st.characters(min_codepoint=low, max_codepoint=high) for low, high in scripts])
    words = st.sampled_from(
        [
            "The",
            "naïve",
            "Straße",
            "北京",
            "中国人",
            "don't",
            "3.14",
            "[MASK]",
            "[SEP]",
            "##s",
            "Ωμέγα",
            "a\u0301",
            "😀",
        ]
    )
    gaps = st.sampled_from(["", " ", "\t", "\u00a0", "\u3000", "\u200b", "\x00", ", ", "-", "。"])
    phrases = st.lists(st.tuples(words, gaps).map("".join), max_size=12).map("".join)
    made: list[str] = []

    @seed(0)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.one_of(st.text(), st.text(mixed, max_size=60), phrases))
    def collect(text: str) -> None:
        made.append(text)

    collect()
    return made


class PurePython:
    """Our tokenizer beside transformers' pure-Python one, over one of BERT's vocabularies."""

    def __init__(self, vocabulary: str) -> None:
        file = vocabulary_file(vocabulary)
        self.lowercase = vocabulary != "cased"
        self.ours = Tokenizer.load(file, lowercase=self.lowercase)
        self.theirs = BertTokenizerLegacy(str(file), do_lower_case=self.lowercase)

    def compare(self, name: str, texts: Iterable[str], listed: Callable[[int, str], Any]) -> dict[str, Any]:
        """Count equal ids and list the texts that differ, each with the characters to blame."""
        report: dict[str, Any] = {"what": name, "texts": 0, "different": 0, "unexplained": 0, "causes": Counter()}
        examples = []
        for index, text in enumerate(texts):
            report["texts"] += 1
            if self.agree(text):
                continue
            causes = self.causes(text)
            report["different"] += 1
            report["unexplained"] += not causes
            report["causes"].update(set(causes.values()))
            blamed = {f"U+{ord(character):04X}": cause for character, cause in sorted(causes.items())}
            examples.append({"text": listed(index, text), "because": blamed or "unexplained"})
        print(name, {key: value for key, value in report.items() if key != "what"}, file=sys.stderr)
        return {**report, "causes": dict(report["causes"]), "listed": examples[:EXAMPLES_LISTED]}

    def agree(self, text: str) -> bool:
        return bool(self.ours.encode(text).ids == self.theirs.encode(text))

    def causes(self, text: str) -> dict[str, str]:
        """The characters to blame for a difference; none if without them the difference is still there."""
        blamed = {character: cause for character in set(text) if (cause := self.cause_of(character))}
        rest = "".join(character for character in text if character not in blamed)
        if self.agree(rest):
            return blamed
        if not self.lowercase:
            blamed |= {character: "composition" for character in rest if unicodedata.combining(character)}
            rest = composed(rest)
        return blamed if self.agree(rest) else {}

    def cause_of(self, character: str) -> str | None:
        if character == "Σ" and self.lowercase:
            return "final sigma"
        if self.agree(f"a{character}b 1{character}"):
            return None
        if unicodedata.category(character) == "Cn":
            return "unassigned"
        if 0x2B820 <= ord(character) <= 0x2B91F:
            return "extension E"
        if not self.lowercase and composed(f"a{character}") != f"a{character}":
            return "composition"
        return "newer Unicode"


def composed(text: str) -> str:
    """The text without control characters, accents composed."""
    shown = "".join(c for c in text if c.isspace() or not unicodedata.category(c).startswith("C"))
    return unicodedata.normalize("NFC", shown)


def number(index: int, text: str) -> int:
    """How a corpus line is listed: by its number alone, for its text belongs to others."""
    return index + 1


def ascii_text(index: int, text: str) -> str:
    """How a made-up string is listed: itself, in escapes."""
    return ascii(text)[:200]


def compare_with_fast(name: str, vocabulary: str, lines: Iterable[str]) -> dict[str, Any]:
    """Compare ids and offsets with the fast tokenizer, a thousand lines at a time."""
    file = vocabulary_file(vocabulary)
    ours, theirs = Tokenizer.load(file), BertTokenizer(vocab=str(file))
    report: dict[str, Any] = {"what": name, "texts": 0, "different": 0, "unexplained": 0, "listed": []}
    lines = iter(lines)
    while batch := list(islice(lines, 1000)):
        expected = theirs(batch, return_offsets_mapping=True)
        for index, encoding in enumerate(ours.encode_batch(batch)):
            same = encoding.ids == expected["input_ids"][index]
            if not same or encoding.offsets != [tuple(span) for span in expected["offset_mapping"][index]]:
                report["listed"].append({"text": report["texts"] + index + 1, "because": "unexplained"})
        report["texts"] += len(batch)
    report["different"] = report["unexplained"] = len(report["listed"])
    print(name, {key: report[key] for key in ("texts", "different")}, file=sys.stderr)
    return {**report, "listed": report["listed"][:EXAMPLES_LISTED]}


def vocabulary_file(vocabulary: str) -> Path:
    """One of BERT's vocabularies under $HEEDFUL_MODELS."""
    return Path(os.environ["HEEDFUL_MODELS"]) / "vocab" / f"bert_base_{vocabulary}_vocab.txt"


def write_report(output: Path, comparisons: list[dict[str, Any]]) -> None:
    """Write the JSON report, whole or not at all."""
    libraries = f"tokenizers {tokenizers.__version__}, transformers {transformers.__version__}"
    report = {
        "what": "our token ids (and offsets) against those of transformers",
        "command": "python benchmarks/tokenizer_parity.py -o docs/results/tokenizer_parity.json",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}",
        "causes": CAUSES,
        "comparisons": comparisons,
    }
    temporary = output.with_name(f".{output.name}.part")
    temporary.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    temporary.replace(output)


if __name__ == "__main__":
    main()
