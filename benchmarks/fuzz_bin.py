"""What damaged or hostile files of weights do to the readers: nothing is run, nothing crashes, all ends soon.

    python benchmarks/fuzz_bin.py                                the long run; writes docs/results/fuzz_bin.json
    python benchmarks/fuzz_bin.py --mutations 300 --flips 50 --megabytes 20 --output fuzz.json

Mutations are made in the pickle of a `pytorch_model.bin` (the checksums of the archive set right again, so that the
interpreter sees them), in archives, in files of the legacy layout, and in the entries of a TensorFlow index (checksums
right again). Some begin with a pickle that would make a sentinel file if anything in it were run. Flipped bits are made
anywhere in TensorFlow bundles and in archives. At the end the speed of reading a bundle is measured, every checksum
verified.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import random
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.bin_file import read_bin
from heedful.checkpoints.crc32c import crc32c, folded_crc32c
from heedful.checkpoints.sorted_table import read_table
from heedful.checkpoints.stored_tensor import StoredTensor
from heedful.checkpoints.tensor_bundle import read_bundle
from heedful.errors import HeedfulError

ROOT = Path(__file__).resolve().parent.parent
DANGEROUS = ("posix\nsystem", "builtins\neval", "builtins\nexec", "subprocess\nPopen", "torch.hub\nload", "os\nremove")

# What Python reports to an audit hook when a program is started, a pickle asks for a name or the network is used.
PROGRAMS = {
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen"),
    *("pickle.find_class", "socket.__new__", "ctypes.dlopen"),
}


@dataclass
class Outcome:
    """What became of the files of one kind."""

    files: int = 0
    refused: int = 0
    same: int = 0  # read, with the tensors of the file before it was damaged
    other: int = 0  # read, with other tensors: only where no checksum covers the change
    crashes: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0  # seconds

    def row(self, name: str) -> list[Any]:
        """A line of the table."""
        crashed = sum(self.crashes.values())
        return [name, self.files, self.refused, self.same, self.other, crashed, f"{self.longest:.2f}"]


def tensors() -> OrderedDict[str, torch.Tensor]:
    """A small state dict with shared storages and several types."""
    rng = torch.Generator().manual_seed(0)
    matrix = torch.randn(16, 12, generator=rng)
    found = {f"bert.encoder.layer.{i}.output.dense.weight": torch.randn(4, 3, generator=rng) for i in range(4)}
    views = {"whole": matrix, "rows": matrix[3:5], "turned": matrix.t(), "half": matrix.half(), "ids": torch.arange(9)}
    return OrderedDict({**found, **views, "bf16": matrix[0].bfloat16()})


def judge(outcome: Outcome, read: Callable[[], Mapping[str, StoredTensor]], wanted: Mapping[str, torch.Tensor]) -> None:
    """Read a file once and count what became of it."""
    began = time.perf_counter()
    outcome.files += 1
    try:
        found = {name: stored.read() for name, stored in read().items()}
        equal = found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in wanted)
        outcome.same += equal
        outcome.other += not equal
    except HeedfulError:
        outcome.refused += 1
    except Exception as error:  # whatever it is, it is what this script looks for
        outcome.crashes[f"{type(error).__name__}: {error}"[:200]] += 1
    outcome.longest = max(outcome.longest, time.perf_counter() - began)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One to four changes: bits, bytes, numbers, pieces left out, doubled or moved, and opcodes put in."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(changed) + 1), rng.choice([1, 2, 4, 8, 30])
        piece = bytes(changed[at : at + size])
        other = rng.randrange(len(changed) + 1)
        match rng.randrange(7):
            case 0 if piece:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at : at + size] = rng.randbytes(size)
            case 2:
                changed[at : at + 4] = struct.pack("<i", rng.choice([-1, 0, 2**31 - 1, -(2**31), 65536]))
            case 3:
                del changed[at : at + size]
            case 4:
                changed[other:other] = piece * rng.choice([1, 2, 1000])
            case 5:
                changed[at:at] = bytes(
                    rng.choices(b"(.0123abcdehijlopqrstuGIJKLMNQRSTUVX]}\x80\x81\x85\x86\x93", k=size)
                )
            case _:
                name = rng.choice(DANGEROUS).encode()
                changed[at:at] = b"c" + name + b"\n(X\x04\x00\x00\x00truetR"
    return bytes(changed)


def hostile(sentinel: Path) -> bytes:
    """A pickle that makes a file if it is run."""

    class Hostile:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.system, (f"touch {sentinel}",)

    return saved({"a": torch.ones(2), "b": Hostile()}, zipped=True)


def saved(value: Any, zipped: bool) -> bytes:
    """The bytes of torch.save."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def in_archive(archive: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with another pickle, all checksums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            new.writestr(entry.filename, change(content) if entry.filename.endswith("data.pkl") else content)
    return out.getvalue()


def fuzz_bins(folder: Path, count: int, rng: random.Random) -> dict[str, Outcome]:
    """Read mutated .bin files, by the layout and by what was mutated."""
    wanted, sentinel, path = tensors(), folder / "sentinel", folder / "pytorch_model.bin"
    sound, legacy, evil = saved(wanted, True), saved(wanted, False), hostile(sentinel)
    kinds: dict[str, Callable[[], bytes]] = {
        "pickle in an archive": lambda: in_archive(sound, lambda content: mutated(content, rng)),
        "hostile pickle in an archive": lambda: in_archive(evil, lambda content: mutated(content, rng)),
        "archive": lambda: mutated(sound, rng),
        "hostile archive": lambda: mutated(evil, rng),
        "legacy layout": lambda: mutated(legacy, rng),
    }
    outcomes = {name: Outcome() for name in kinds}
    for number in range(count):
        name = list(kinds)[number % len(kinds)]
        path.write_bytes(kinds[name]())
        judge(outcomes[name], lambda: read_bin(path), wanted)
        if sentinel.exists():
            sys.exit(f"a mutation of the kind {name!r} was run")
    return outcomes


def fuzz_bundles(folder: Path, count: int, rng: random.Random) -> dict[str, Outcome]:
    """Read bundles of which one entry of the index was mutated before the checksums were made."""
    wanted, writer, outcome = tensors(), bundle_writer(), Outcome()
    index = writer.write_bundle(folder / "fuzzed.ckpt", wanted, shards=2)
    rows = read_table(index)
    for _ in range(count):
        key = rng.choice(list(rows))
        writer.write_table(index, {**rows, key: mutated(rows[key], rng)})
        judge(outcome, lambda: read_bundle(index), wanted)
    return {"entry of a TensorFlow index": outcome}


def flip_bits(folder: Path, count: int, rng: random.Random) -> dict[str, Outcome]:
    """Read a bundle and an archive with one bit flipped, anywhere in their files."""
    wanted = tensors()
    index = bundle_writer().write_bundle(folder / "model.ckpt", wanted, shards=2)
    archive = folder / "flipped.bin"
    archive.write_bytes(saved(wanted, True))
    readers: dict[str, tuple[list[Path], Callable[[], Mapping[str, StoredTensor]]]] = {
        "bit in a TensorFlow bundle": (sorted(folder.glob("model.ckpt.*")), lambda: read_bundle(index)),
        "bit in an archive": ([archive], lambda: read_bin(archive)),
    }
    outcomes = {name: Outcome() for name in readers}
    for name, (files, read) in readers.items():
        for _ in range(count):
            path = rng.choice(files)
            content = path.read_bytes()
            damaged = bytearray(content)
            damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            judge(outcomes[name], read, wanted)
            path.write_bytes(content)
    return outcomes


def reading_speed(folder: Path, megabytes: int) -> list[list[str]]:
    """MB/s of a bundle read tensor by tensor into new memory, and of the checksum alone; the best of three."""
    matrix = torch.randn(1024, 1024)  # 4 MiB
    wanted = {f"layer_{i}/kernel": matrix for i in range(max(1, megabytes * 10**6 // matrix.nbytes))}
    index = bundle_writer().write_bundle(folder / "large.ckpt", wanted)
    size = len(wanted) * matrix.nbytes / 1e6
    content = memoryview(bytearray(matrix.numpy().tobytes() * 4))
    library = "google-crc32c" if importlib.util.find_spec("google_crc32c") else "numpy"
    return [
        [f"bundle of {size:.0f} MB, checksums by {library}", _speed(size, lambda: _copy_all(index))],
        [f"the checksum alone, by {library}", _speed(len(content) / 1e6, lambda: crc32c(content))],
        ["the checksum alone, by numpy", _speed(len(content) / 1e6, lambda: folded_crc32c(content))],
    ]


def _copy_all(index: Path) -> None:
    for stored in read_bundle(index).values():
        stored.read().clone()


def _speed(size: float, work: Callable[[], Any]) -> str:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return f"{size / min(times):.0f}"


def bundle_writer() -> ModuleType:
    """The writer of bundles that the tests have."""
    path = ROOT / "tests" / "checkpoints" / "bundle_writer.py"
    spec = importlib.util.spec_from_file_location("bundle_writer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Do all of it and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--flips", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "fuzz_bin.json")
    options = parser.parse_args()
    rng, run = random.Random(options.seed), set[str]()
    sys.addaudithook(lambda event, _: run.add(event) if event in PROGRAMS else None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcomes = fuzz_bins(folder, options.mutations, rng)
        outcomes |= fuzz_bundles(folder, options.mutations // 10, rng)
        outcomes |= flip_bits(folder, options.flips, rng)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        speed = reading_speed(folder, options.megabytes)
    if run:
        sys.exit(f"a file made Python do {', '.join(sorted(run))}")
    columns = ["what was damaged", "files", "refused", "same tensors", "other tensors", "crashes", "longest (s)"]
    crashes = [crash for outcome in outcomes.values() for crash in outcome.crashes]
    write_results(
        options.output,
        "Damaged and hostile files of weights",
        "mutated `.bin` files and flipped bits: refused, or read with the same tensors, with no crash and nothing run",
        [Table(columns, [outcome.row(name) for name, outcome in outcomes.items()]), Table(["reading", "MB/s"], speed)],
        [
            "Nothing was run: the sentinel file of the hostile pickles never appeared, and Python's audit hook saw no"
            " program started, no name imported by a pickle and no socket opened.",
            f"Reading all damaged files took {grown:.0f} MB of memory beyond what the process had before.",
            "Other tensors come only from changes that no checksum covers: pickles and entries whose checksums were set"
            " right again, and the legacy layout, which has none.",
            *crashes,
        ],
        arguments=f"--mutations {options.mutations} --flips {options.flips} --megabytes {options.megabytes}"
        f" --seed {options.seed}",
    )


if __name__ == "__main__":
    main()
