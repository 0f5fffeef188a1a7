"""TensorFlow's tensor bundle: what is written comes back bit for bit, and what is damaged is refused by its name."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from heedful.checkpoints.tensor_bundle import read_bundle
from heedful.errors import HeedfulError


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    kinds = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    floats = {
        f"bert/encoder/layer_{i}/{part}": torch.randn(3 + i, 5, generator=rng).to(kinds[i % 4])
        for i in range(40)
        for part in ("kernel", "bias")
    }
    return {
        **floats,
        "global_step": torch.tensor(12345),
        "whole": torch.arange(7, dtype=torch.int32),
        "empty": torch.empty(0, 4),
    }


def same(found: dict[str, torch.Tensor], tensors: dict[str, torch.Tensor]) -> bool:
    return found.keys() == tensors.keys() and all(
        found[name].dtype == tensor.dtype and torch.equal(found[name], tensor) for name, tensor in tensors.items()
    )


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_round_trip(
    bundles: ModuleType, tensors: dict[str, torch.Tensor], tmp_path: Path, shards: int, big_endian: bool
) -> None:
    index = bundles.write_bundle(tmp_path / "model.ckpt", tensors, shards, big_endian)
    found = read_bundle(index)
    assert same({name: stored.read() for name, stored in found.items()}, tensors)
    assert found["whole"].dtype == "I32" and found["empty"].shape == (0, 4) and found["global_step"].shape == ()


def test_reading_leaves_the_file_as_it_is(bundles: ModuleType, tmp_path: Path) -> None:
    index = bundles.write_bundle(tmp_path / "model.ckpt", {"a": torch.ones(4)})
    read_bundle(index)["a"].read().zero_()
    assert torch.equal(read_bundle(index)["a"].read(), torch.ones(4))


Change = Callable[[ModuleType, Path], Path]
DATA = "model.ckpt.data-00000-of-00001"


def bundle(**options: object) -> Change:
    """A small bundle, written with these options."""
    return lambda writer, prefix: writer.write_bundle(prefix, {"a": torch.ones(4, 2), "b": torch.zeros(3)}, **options)


def altered(file: str, change: Callable[[bytes], bytes]) -> Change:
    """A small bundle of which one file was changed afterwards."""

    def make(writer: ModuleType, prefix: Path) -> Path:
        index = bundle()(writer, prefix)
        path = prefix.with_name(file)
        path.write_bytes(change(path.read_bytes()))
        return index

    return make


def with_entry(message: Callable[[ModuleType], bytes]) -> Change:
    """A small bundle with one strange entry."""
    return lambda writer, prefix: bundle(more={"b": message(writer)})(writer, prefix)


REFUSED: dict[str, tuple[Change, str]] = {
    "flipped bit in a tensor": (altered(DATA, lambda c: bytes([c[0] ^ 4]) + c[1:]), "checksum of the tensor"),
    "truncated data": (altered(DATA, lambda c: c[:-1]), "ends at byte 43, before the end of b"),
    "no data": (altered(DATA, lambda c: b""), "ends at byte 0"),
    "flipped bit in the index": (altered("model.ckpt.index", lambda c: c[:9] + bytes([c[9] ^ 1]) + c[10:]), "checksum"),
    "truncated index": (altered("model.ckpt.index", lambda c: c[:-1]), "does not end as a table does"),
    "empty index": (altered("model.ckpt.index", lambda c: b""), "does not end as a table does"),
    "compressed": (bundle(compression=1), "snappy"),
    "wrong shape": (with_entry(lambda w: w.entry(1, (5,), 0, 32, bytes(12))), r"b has the shape \[5\].* 12 bytes"),
    "text": (with_entry(lambda w: w.entry(7, (1,), 0, 32, bytes(12))), "b is of TensorFlow's data type number 7"),
    "slices": (with_entry(lambda w: w.entry(1, (3,), 0, 32, bytes(12)) + w.field(7, b"")), "b is a variable in slices"),
    "another shard": (with_entry(lambda w: w.entry(1, (3,), 1, 32, bytes(12))), "beyond the last"),
    "no size": (with_entry(lambda w: w.entry(1, (2**64 - 1,), 0, 32, bytes(12))), "no known size"),
    "half a field": (with_entry(lambda w: w.field(2, b"abc")[:-1]), "ends within a field"),
    "unknown wire type": (with_entry(lambda w: b"\x0b"), "wire type 3"),
    "endless number": (with_entry(lambda w: b"\xff" * 11), "too long"),
    "no header": (bundle(more={"": b"\x08"}), "ends within a number"),
    "too many shards": (bundle(more={"": b"\x08\xff\xff\xff\xff\x0f"}), "number of shards"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(bundles: ModuleType, tmp_path: Path, case: str) -> None:
    make, message = REFUSED[case]
    index = make(bundles, tmp_path / "model.ckpt")
    with pytest.raises(HeedfulError, match=message) as caught:
        for stored in read_bundle(index).values():
            stored.read()
    assert str(tmp_path) in str(caught.value.where)
    assert caught.value.remedy


def test_absent_data_files_are_named(bundles: ModuleType, tmp_path: Path) -> None:
    index = bundles.write_bundle(tmp_path / "model.ckpt", {"a": torch.ones(1)}, shards=3)
    (tmp_path / "model.ckpt.data-00001-of-00003").unlink()
    with pytest.raises(HeedfulError, match=r"the data file model\.ckpt\.data-00001-of-00003 is absent"):
        read_bundle(index)


def test_a_flipped_bit_is_refused_or_harmless(
    bundles: ModuleType, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    index = bundles.write_bundle(tmp_path / "model.ckpt", tensors, shards=2)
    files = sorted(tmp_path.iterdir())
    rng, refused = random.Random(0), 0
    for _ in range(200):
        path = rng.choice(files)
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert same({name: stored.read() for name, stored in read_bundle(index).items()}, tensors)
        except HeedfulError:
            refused += 1
        path.write_bytes(content)
    assert refused > 150
