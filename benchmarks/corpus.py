"""How fast a corpus is built, how much memory that takes, and whether damage is noticed.

    python benchmarks/corpus.py --tokenizer DIR [--corpus FILE.jsonl.gz] [--megabytes 10,100,500] [-o FILE.json]

Speed counts megabytes of text (UTF-8, unpacked) against the wall clock of the whole command, start of Python included.
Memory is the peak of the resident sizes of all its processes together, shared pages counted in each.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from heedful.data.corpus.corpus import Corpus
from heedful.errors import HeedfulError
from heedful.text.documents import read_lines

STATIC = ["--static", "--duplicates", "10"]


def main() -> None:
    """Run every measurement and write one JSON file."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        report = measure(options, Path(scratch))
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    if options.output:
        Path(options.output).parent.mkdir(parents=True, exist_ok=True)
        Path(options.output).write_text(text, encoding="utf-8")


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """All numbers of the report."""
    report: dict[str, Any] = {
        "what": "corpus building: MB/s of text, peak memory of all processes, damaged shards detected",
        "command": "python benchmarks/corpus.py " + " ".join(_without_paths(sys.argv[1:])),
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "speed": [],
        "memory": [],
    }
    largest = max(options.megabytes)
    for workers in options.workers:
        for extra in ([], ["--words"], STATIC):
            source = _text_of(options.corpus, options.speed_megabytes, scratch)
            row = run_build(source, options.tokenizer, scratch, workers, extra)
            report["speed"].append({"options": " ".join(extra), "workers": workers, **row})
            print(f"{workers} workers {' '.join(extra) or 'plain'}: {row['mb_per_s_per_worker']} MB/s per worker")
        for megabytes in options.megabytes:
            row = run_build(_text_of(options.corpus, megabytes, scratch), options.tokenizer, scratch, workers, [])
            report["memory"].append({"workers": workers, **row})
            print(f"{workers} workers, {megabytes} of {largest} MB: peak {row['peak_mb']} MB")
    detected = count_detected(scratch / "corpus", options.damages)
    report["damage"] = {"damaged": options.damages, "detected": detected}
    print(f"damaged shards detected: {detected} of {options.damages}")
    return report


def run_build(source: Path, tokenizer: str, scratch: Path, workers: int, extra: list[str]) -> dict[str, Any]:
    """Build once in a process of its own; how long it took and how much memory."""
    folder = scratch / "corpus"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    command = [sys.executable, "-m", "heedful", "corpus", "build", str(source), "-o", str(folder)]
    command += ["--tokenizer", tokenizer, "--workers", str(workers), *extra]
    started = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident(process))
        time.sleep(0.05)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"the build failed: {' '.join(command)}")
    megabytes = Corpus.open(folder).manifest["input"]["bytes"] / 1e6
    return {
        "mb": round(megabytes, 1),
        "seconds": round(seconds, 2),
        "mb_per_s_per_worker": round(megabytes / seconds / workers, 3),
        "peak_mb": round(peak / 1e6, 1),
    }


def count_detected(folder: Path, damages: int, seed: int = 0) -> int:
    """Damage shards of a corpus one at a time (a bit, the length) and count how often opening it names that one."""
    rng = random.Random(seed)
    shards = sorted(folder.glob("*.safetensors"))
    detected = 0
    for turn in range(damages):
        shard = rng.choice(shards)
        raw = shard.read_bytes()
        place = rng.randrange(len(raw))
        flipped = bytes([raw[place] ^ (1 << rng.randrange(8))])
        shard.write_bytes(raw[:place] if turn % 4 == 0 else raw[:place] + flipped + raw[place + 1 :])
        try:
            Corpus.open(folder, verify=True)
        except HeedfulError as error:
            detected += error.where == shard
        shard.write_bytes(raw)
    return detected


def _resident(process: psutil.Process) -> int:
    total = 0
    for one in [process, *_children(process)]:
        try:
            total += one.memory_info().rss
        except psutil.Error:
            continue
    return total


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def _text_of(corpus: str, megabytes: float, scratch: Path) -> Path:
    """A packed file with that much text of the corpus, repeated where that is too short."""
    path = scratch / f"text-{megabytes}.jsonl.gz"
    if not path.exists():
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
            for text in _texts(corpus, megabytes * 1e6):
                file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    return path


def _texts(corpus: str, size: float) -> Iterator[str]:
    while True:
        for line in read_lines(corpus):
            text = json.loads(line)["text"]
            yield text
            size -= len(text.encode())
            if size <= 0:
                return


def _options() -> argparse.Namespace:
    data = os.environ.get("HEEDFUL_DATA", "")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default=f"{data}/corpus_enwiki/enwiki.jsonl.gz")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--workers", type=_numbers, default=[1, 2])
    parser.add_argument("--speed-megabytes", type=float, default=52.7)
    parser.add_argument("--megabytes", type=_numbers, default=[10, 100, 500])
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("-o", "--output", default="docs/results/corpus.json")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _without_paths(arguments: list[str]) -> list[str]:
    return [Path(argument).name if "/" in argument else argument for argument in arguments]


if __name__ == "__main__":
    main()
