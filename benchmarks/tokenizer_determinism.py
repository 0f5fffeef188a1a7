"""Train the same vocabulary many times in separate processes and compare the bytes.

    HEEDFUL_DATA=… python benchmarks/tokenizer_determinism.py -o docs/results/tokenizer_determinism.json

Each run has its own PYTHONHASHSEED. For comparison the library's own trainer is run on the same text.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import tokenizers

from heedful.text.documents import read_documents

CORPORA = ("corpus_enwiki/enwiki.jsonl.gz", "corpus_zhwiki/zhwiki_sample.jsonl.gz")
LIBRARY_TRAINER = """
import sys, tokenizers
library = tokenizers.BertWordPieceTokenizer()
library.train([sys.argv[1]], vocab_size=int(sys.argv[3]), show_progress=False)
library.save_model(sys.argv[2])
"""


def main() -> None:
    """Train, compare, write the report, and fail if our bytes differ between runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--documents", type=int, default=1000, help="of each of two corpora, English and Chinese")
    parser.add_argument("--vocab-size", type=int, default=8000)
    arguments = parser.parse_args()
    size = str(arguments.vocab_size)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(scratch) / "corpus.txt"
        write_corpus(corpus, arguments.documents)
        trainers: dict[str, Callable[[Path], list[str]]] = {
            kind: lambda out, kind=kind: [  # type: ignore[misc]
                *["-m", "heedful", "tokenizer", "train", str(corpus), "-o", str(out)],
                *["--kind", kind, "--vocab-size", size],
            ]
            for kind in ("wordpiece", "bpe")
        }
        trainers["the library's WordPiece trainer"] = lambda out: ["-c", LIBRARY_TRAINER, str(corpus), str(out), size]
        results = [repeat(name, trainer, arguments.runs, Path(scratch)) for name, trainer in trainers.items()]
        write_report(arguments.output, corpus.stat().st_size, arguments.vocab_size, results)
    if any(result["different_bytes"] > 1 for result in results[:2]):
        sys.exit("the same text gave different bytes")


def write_corpus(file: Path, documents: int) -> None:
    """Put the first documents of each corpus under $HEEDFUL_DATA into one plain text."""
    with file.open("w", encoding="utf-8") as out:
        for corpus in CORPORA:
            for document in islice(read_documents(Path(os.environ["HEEDFUL_DATA"]) / corpus), documents):
                out.write("\n".join(document) + "\n\n")


def repeat(name: str, trainer: Callable[[Path], list[str]], runs: int, scratch: Path) -> dict[str, Any]:
    """Train `runs` times, each in a process of its own, and count the different results."""
    digests, seconds = [], []
    for run in range(runs):
        folder = scratch / f"{len(name)}-{run}"
        folder.mkdir()
        start = time.perf_counter()
        environment = {**os.environ, "PYTHONHASHSEED": str(run)}
        subprocess.run([sys.executable, *trainer(folder)], check=True, capture_output=True, env=environment)
        seconds.append(time.perf_counter() - start)
        names = ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.json")
        content = b"".join((folder / name).read_bytes() for name in names if (folder / name).exists())
        digests.append(hashlib.sha256(content).hexdigest())
    result = {"trainer": name, "runs": runs, "different_bytes": len(set(digests)), "sha256": sorted(set(digests))[:3]}
    print(result, file=sys.stderr)
    return {**result, "seconds_median": round(sorted(seconds)[runs // 2], 1)}


def write_report(output: Path, corpus_bytes: int, vocab_size: int, results: list[dict[str, Any]]) -> None:
    """Write the JSON report, whole or not at all."""
    report = {
        "what": "the same text trained on again and again: how many different vocabularies come out",
        "command": "python benchmarks/tokenizer_determinism.py -o docs/results/tokenizer_determinism.json",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"tokenizers {tokenizers.__version__}",
        "corpus_bytes": corpus_bytes,
        "vocab_size": vocab_size,
        "results": results,
    }
    temporary = output.with_name(f".{output.name}.part")
    temporary.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    temporary.replace(output)


if __name__ == "__main__":
    main()
