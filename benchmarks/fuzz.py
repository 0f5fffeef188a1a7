"""What damaged text files do to the readers, and whether the fast encoder says what the `tokenizers` library says.

    python benchmarks/fuzz.py                    the long run; writes docs/results/fuzz.json
    python benchmarks/fuzz.py --settings 2000 --labelled 2000 --strings 20000 --output fuzz.json

Settings are the files that tell what a model, a corpus or a run is: config.json, tokenizer.json, vocab.txt, headers of
safetensors, manifests and config.toml, mutated as bytes and as JSON. Labelled files are mutated in quotes, separators,
encodings, row lengths and sizes of fields; of those that are read, every row must be an example or be told with its
line. Each reading may end in our own error, within a second. Strings are random Unicode, encoded as `corpus build` does
and by the library itself.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import signal
import struct
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import tokenizers
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.config import write_toml
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.encoder import SentenceEncoder
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.labelled.dataset import Columns, Dataset
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.tasks.registry import task_named
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.training.run_folder import RunFolder
from heedful.training.training_config import TrainingConfig

HANGING = 20  # seconds after which a reading counts as hanging
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1e308,
    float("nan"),
    2**63,
    10**30,
    "",
    "../x",
    "\0",
    "x" * 10_000,
    [],
    {},
    [[[[[[]]]]]],
    {"a": {}},
)
SIGNS = (
    '"',
    "'",
    "\t",
    ",",
    ";",
    "\n",
    "\r\n",
    "\r",
    "\\",
    "\0",
    "\ufeff",
    "\u2028",
    "\ud7ff",
    "{",
    "}",
    "[",
    "]",
    " ",
)
BYTES = (b"\xff", b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", "中".encode("gb18030"), "é".encode("latin-1"))


@dataclass
class Outcome:
    """What became of the files of one kind."""

    files: int = 0
    refused: int = 0
    unaccounted: list[str] = field(default_factory=list)  # files read with rows that are neither examples nor told
    crashes: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0  # seconds

    def row(self, name: str) -> list[Any]:
        """A line of the table."""
        read, crashed = self.files - self.refused - sum(self.crashes.values()), sum(self.crashes.values())
        return [name, self.files, self.refused, read, len(self.unaccounted), crashed, f"{self.longest:.2f}"]


class Hanging(BaseException):
    """A reading took too long."""


@contextmanager
def deadline() -> Iterator[None]:
    """Raise in a reading that does not come to an end."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hanging(f"still reading after {HANGING} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGING)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge(outcome: Outcome, path: Path, read: Callable[[], bool]) -> None:
    """Read once and count what became of it; `read` says whether everything in the file is accounted for."""
    began = time.perf_counter()
    outcome.files += 1
    try:
        with deadline(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not read():
                outcome.unaccounted.append(repr(path.read_bytes())[:3000])
    except HeedfulError:
        outcome.refused += 1
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        outcome.crashes[f"{type(error).__name__}: {error}"[:200]] += 1
    outcome.longest = max(outcome.longest, time.perf_counter() - began)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One to four changes: bits, bytes, signs that formats live by, and pieces left out, doubled or moved."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(changed) + 1), rng.choice([1, 2, 5, 40])
        piece, other = bytes(changed[at : at + size]), rng.randrange(len(changed) + 1)
        match rng.randrange(7):
            case 0 if piece:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at:at] = rng.choice(SIGNS).encode("utf-8", "surrogatepass")
            case 2:
                changed[at:at] = rng.choice(BYTES)
            case 3:
                del changed[at : at + size]
            case 4:
                changed[other:other] = piece * rng.choice([1, 3, 1000])
            case 5:
                changed[at : at + size] = rng.choice(SIGNS).encode("utf-8", "surrogatepass") * size
            case _:
                del changed[at:]
    return bytes(changed)


def mutated_json(content: bytes, rng: random.Random) -> bytes:
    """The same object with one value, anywhere in it, that nobody expects; or with a key more or less."""
    value = json.loads(content)
    place = value
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
            place = place[key]
            continue
        if rng.random() < 0.2:
            del place[key]
        else:
            place[key] = rng.choice(ODD)
        break
    return json.dumps(value).encode()


def mutated_header(content: bytes, rng: random.Random) -> bytes:
    """A safetensors file whose header was mutated; its length is right again, or not."""
    (size,) = struct.unpack("<Q", content[:8])
    header = rng.choice([mutated, mutated_json])(content[8 : 8 + size], rng)
    told = rng.choice([len(header), len(header), len(header), size, 0, 2**40, 2**64 - 1])
    return struct.pack("<Q", told) + header + content[8 + size :]


def small_tokenizer() -> Tokenizer:
    """Letters, digits, signs and a few ideographs."""
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?'-", *"中国人大学生北京"]
    pieces = [*SPECIAL_TOKENS.values(), *letters, *(f"##{letter}" for letter in letters), "the", "##ing"]
    return Tokenizer(wordpiece_tokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True))


def material(folder: Path) -> None:
    """A model folder, a corpus and a run folder, as small as they can be."""
    words = small_tokenizer()
    config = BertConfig(
        words.vocab_size, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    model = BertForPretraining(config)
    initialise(model, config, 0)
    save_model(model, folder / "model", words)
    text = folder / "text.txt"
    text.write_text("the dog. the cat.\nbeing in 北京.\n\nthe end.\nit is.\n" * 20, encoding="utf-8")
    build_corpus([str(text)], folder / "corpus", words, TokenSettings(), ReadingSettings())
    (folder / "run").mkdir()
    write_toml(TrainingConfig(steps=3), folder / "run" / "config.toml")


def _model(folder: Path) -> bool:
    found = read_folder(folder / "model")
    load_encoder(found)
    if found.tokenizer is not None:
        found.tokenizer.encode("the being 北京")
    return True


def _corpus(folder: Path) -> bool:
    return Corpus.open(folder / "corpus").tokenizer.vocab_size > 0


def _run(folder: Path) -> bool:
    return RunFolder(folder / "run").stored_as(TrainingConfig) is not None


# The files, how they are mutated beside plain bytes, and who reads them.
Read = Callable[[Path], bool]
SETTINGS: Mapping[str, tuple[Callable[[bytes, random.Random], bytes], Read]] = {
    "model/config.json": (mutated_json, _model),
    "model/tokenizer.json": (mutated_json, _model),
    "model/vocab.txt": (mutated, _model),
    "model/model.safetensors": (mutated_header, _model),
    "corpus/manifest.json": (mutated_json, _corpus),
    "corpus/tokenizer/tokenizer.json": (mutated_json, _corpus),
    "run/config.toml": (mutated, _run),
}


def fuzz_settings(folder: Path, count: int, rng: random.Random) -> dict[str, Outcome]:
    """Read a model, a corpus or a run of which one file was mutated."""
    material(folder)
    kinds = {name: how for name, how in SETTINGS.items() if (folder / name).is_file()}
    outcomes = {name: Outcome() for name in kinds}
    for number in range(count):
        name = list(kinds)[number % len(kinds)]
        special, read = kinds[name]
        path = folder / name
        content = path.read_bytes()
        if name.endswith("vocab.txt"):  # read only where there is no tokenizer.json
            (folder / "model" / "tokenizer.json").rename(folder / "aside.json")
        header = name.endswith(".safetensors")
        path.write_bytes(special(content, rng) if header or rng.random() < 0.5 else mutated(content, rng))
        judge(outcomes[name], path, lambda read=read: read(folder))  # type: ignore[misc]
        path.write_bytes(content)
        if name.endswith("vocab.txt"):
            (folder / "aside.json").rename(folder / "model" / "tokenizer.json")
    return outcomes


def labelled_files() -> dict[str, tuple[str, str]]:
    """A small file of each format, and the task that reads it."""
    rows = [("good" if i % 2 else "bad", f"text {i}, with “signs” and 中文", f"the other {i}") for i in range(12)]
    questions = [
        {"context": f"The dog {i} was grey.", "qas": [{"id": str(i), "question": "What?", "answers": [_dog]}]}
        for i in range(4)
    ]
    choices = [
        {"context": "It", "question": "", "choices": ["ends", "runs", "barks"], "label": i % 3} for i in range(6)
    ]
    return {
        "pairs.tsv": ("label\tsentence1\tsentence2\n" + "".join("\t".join(row) + "\n" for row in rows), "classify"),
        "texts.csv": ("label,text\n" + "".join(f'{a},"{b} ""quoted"""\n' for a, b, _ in rows), "classify"),
        "texts.jsonl": ("".join(json.dumps({"label": a, "text": b}) + "\n" for a, b, _ in rows), "classify"),
        "scores.tsv": (
            "score\ttext\tpair\n" + "".join(f"{i / 3:.2f}\t{b}\t{c}\n" for i, (_, b, c) in enumerate(rows)),
            "regress",
        ),
        "words.conll": ("".join("The\tO\ndog\tB-X\nHenry\tI-X\n.\tO\n\n" for _ in range(6)), "tag"),
        "questions.json": (json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": questions}]}), "answer"),
        "choices.jsonl": ("".join(json.dumps(one) + "\n" for one in choices), "choose"),
    }


_dog = {"text": "dog", "answer_start": 4}


def accounted_for(path: Path, found: Dataset[Any]) -> bool:
    """Whether each row of a table of lines is an example or told of with a line number."""
    told = sum(remark.count for remark in found.remarks)
    if any(not remark.places for remark in found.remarks):
        return False
    if path.suffix == ".tsv":
        # Blank lines before the header are no rows.
        lines = path.read_bytes().decode("utf-8-sig").lstrip("\r\n").split("\n")
        rows = len(lines) - (not lines[-1]) - 1
        return len(found.examples) + told >= rows
    return len(found.examples) > 0


def fuzz_labelled(folder: Path, count: int, rng: random.Random) -> dict[str, Outcome]:
    """Read mutated labelled files by the tasks that they are for."""
    kinds = labelled_files()
    outcomes = {name: Outcome() for name in kinds}
    for number in range(count):
        name = list(kinds)[number % len(kinds)]
        text, task = kinds[name]
        path = folder / name
        content = mutated_json if name == "questions.json" and rng.random() < 0.5 else mutated
        path.write_bytes(content(text.encode(), rng))
        kind = task_named(task)

        def read(path: Path = path, kind: Any = kind) -> bool:
            found = kind.read_data(path, Columns())
            fitted = kind.fit(found.examples)
            fitted.encode(found.examples, WORDS)
            return accounted_for(path, found)

        judge(outcomes[name], path, read)
    return outcomes


WORDS = small_tokenizer()
# Where surprises live: controls, marks that combine, ideographs in and out of BERT's ranges, emoji, what has no case.
RANGES = (
    *((0x20, 0x7E), (0x00, 0x1F), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F)),
    *((0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2E80, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3)),
    *((0xE000, 0xE0FF), (0xF900, 0xFAFF), (0xFE00, 0xFFFD), (0x10300, 0x1032F), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF)),
    *((0x20000, 0x2A6DF), (0x2B820, 0x2B91F), (0x2F800, 0x2FA1F), (0xE0000, 0xE007F), (0x10FF00, 0x10FFFF)),
)
SPECIAL = (*SPECIAL_TOKENS.values(), "the", "being", " ", "  ", "\t", "中国", "İ", "ß", "ﬀ", "[", "[MASK", "##ing")


def random_string(rng: random.Random) -> str:
    """Up to 24 characters or words from all over Unicode, without lone surrogates."""

    def part() -> str:
        if rng.random() < 0.25:
            return rng.choice(SPECIAL)
        low, high = rng.choice(RANGES)
        return chr(rng.randint(low, high))

    return "".join(part() for _ in range(rng.randrange(24)))


def compare_encoders(count: int, rng: random.Random) -> tuple[int, list[str]]:
    """How many random strings were encoded, and those on which `corpus build` and the library differ."""
    different: list[str] = []
    for lowercase in (True, False):
        vocabulary = small_tokenizer().library.get_vocab()
        ours = Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=lowercase))
        library = tokenizers.Tokenizer.from_str(ours.library.to_str())
        encoder = SentenceEncoder(ours)
        for start in range(0, count // 2, 1000):
            texts = [random_string(rng) for _ in range(min(1000, count // 2 - start))]
            ids, _, lengths = encoder.encode(texts)
            place = 0
            for text, length, theirs in zip(
                texts, lengths, library.encode_batch(texts, add_special_tokens=False), strict=True
            ):
                if ids[place : place + length].tolist() != theirs.ids:
                    different.append(text)
                place += length
    return count // 2 * 2, different


def main() -> None:
    """Do all of it and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=100_000)
    parser.add_argument("--labelled", type=int, default=100_000)
    parser.add_argument("--strings", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "fuzz.json")
    options = parser.parse_args()
    tables, remarks = [], []
    columns = ["what was mutated", "files", "refused", "read", "rows unaccounted for", "crashes", "longest (s)"]
    for fuzz, count in ((fuzz_settings, options.settings), (fuzz_labelled, options.labelled)):
        folder = Path(tempfile.mkdtemp())
        fuzz(folder, 50, random.Random(1))  # what is loaded once is no growth
        shutil.rmtree(folder)
        folder = Path(tempfile.mkdtemp())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcomes = fuzz(folder, count, random.Random(f"{options.seed} {fuzz.__name__}"))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        shutil.rmtree(folder)
        tables.append(Table(columns, [outcome.row(name) for name, outcome in outcomes.items()]))
        remarks.append(
            f"Reading the {count:,} files above took {grown:.0f} MB of memory more than reading the first 50."
        )
        remarks += [told for outcome in outcomes.values() for told in (*outcome.crashes, *outcome.unaccounted)]
    encoded, different = compare_encoders(options.strings, random.Random(options.seed))
    tables.append(Table(["random strings", "encoded otherwise than by the library"], [[encoded, len(different)]]))
    remarks += [repr(text) for text in different[:5]]
    write_results(
        options.output,
        "Damaged text files, and random Unicode",
        "mutated files end in our own error or are read, every row accounted for; the encoder of `corpus build` agrees"
        " with the `tokenizers` library",
        tables,
        remarks,
        arguments=f"--settings {options.settings} --labelled {options.labelled} --strings {options.strings}"
        f" --seed {options.seed}",
    )


if __name__ == "__main__":
    main()
