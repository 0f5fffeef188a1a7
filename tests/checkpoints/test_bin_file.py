"""Files of torch.save: every tensor comes back as torch.load gives it, and no file gets anything run."""

from __future__ import annotations

import json
import os
import pickle
import random
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import heedful
from heedful.checkpoints.bin_file import read_bin
from heedful.checkpoints.state_dict_pickle import MOST_ON_STACK, read_pickle
from heedful.checkpoints.tensors import open_tensors
from heedful.errors import HeedfulError

LAYOUTS = {"zip": True, "legacy": False}
KINDS = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16),
    *(torch.int8, torch.uint8, torch.bool),
)


def state_dict() -> OrderedDict[str, torch.Tensor]:
    """Tensors of all types, and all ways to share a storage."""
    rng = torch.Generator().manual_seed(0)
    matrix = torch.randn(6, 8, generator=rng)
    tensors = {str(kind): torch.randint(0, 2, (3, 5), generator=rng).to(kind) for kind in KINDS}
    views = {
        "whole": matrix,
        "rows": matrix[2:4],
        "steps": matrix[1::2, ::3],
        "turned": matrix.t(),
        "one": matrix[5, 7],
    }
    strange = {"empty": torch.empty(0, 4), "spread": torch.arange(3).expand(1, 3), "number": torch.tensor(2.5)}
    found = OrderedDict({**tensors, **views, **strange, "parameter": torch.nn.Parameter(torch.ones(2, 2))})
    found._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]  # as nn.Module does
    return found


def save(value: Any, path: Path, layout: str = "zip", protocol: int = 2) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=LAYOUTS[layout], pickle_protocol=protocol)
    return path


def same(path: Path, wanted: dict[str, torch.Tensor]) -> bool:
    found = {name: stored.read() for name, stored in read_bin(path).items()}
    return list(found) == list(wanted) and all(
        found[name].dtype == tensor.dtype and torch.equal(found[name], tensor) for name, tensor in wanted.items()
    )


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_round_trip(tmp_path: Path, layout: str, protocol: int) -> None:
    path = save(state_dict(), tmp_path / "model.bin", layout, protocol)
    assert same(path, torch.load(path, weights_only=False))
    stored = read_bin(path)["steps"]
    assert (stored.shape, stored.dtype, stored.where) == ((3, 3), "F32", f"{path}: steps")


def test_reading_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = save({"a": torch.ones(3)}, tmp_path / "model.bin")
    read_bin(path)["a"].read().zero_()
    assert same(path, {"a": torch.ones(3)})


def test_the_highest_byte_first(tmp_path: Path) -> None:
    source, path = (
        save({"a": torch.arange(5.0), "b": torch.arange(9)[::2]}, tmp_path / "little.bin"),
        tmp_path / "b.bin",
    )
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            size = {"little/data/0": 4, "little/data/1": 8}.get(entry.filename)
            if size:
                content = b"".join(content[i : i + size][::-1] for i in range(0, len(content), size))
            new.writestr(entry.filename, b"big" if entry.filename.endswith("byteorder") else content)
    assert same(path, {"a": torch.arange(5.0), "b": torch.arange(9)[::2]})


def test_an_old_view_of_a_storage(tmp_path: Path) -> None:
    """Before torch 0.4 a storage could itself be a part of another one, named in the sixth place."""
    path = save({"a": torch.arange(8.0)}, tmp_path / "model.bin", "legacy")
    content = path.read_bytes()
    whole = b"K\x08N"  # the count of numbers, and no view
    assert content.count(whole) == 1
    view = b"K\x08X\x01\x00\x00\x00vK\x02K\x06\x87"
    shape = content.replace(whole, view).replace(b"K\x08\x85", b"K\x05\x85")
    path.write_bytes(shape)
    assert same(path, {"a": torch.arange(2.0, 7.0)})


class Runs:
    """Pickled, it asks for a call when it is read."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.reduced = (call, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.reduced


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("call", "name"),
    [(os.system, "posix.system"), (eval, "__builtin__.eval"), (torch.load, "torch.serialization.load")],
)
def test_nothing_is_run(tmp_path: Path, layout: str, call: Callable[..., Any], name: str) -> None:
    sentinel = tmp_path / "sentinel"
    path = save({"a": torch.ones(1), "b": Runs(call, f"touch {sentinel}")}, tmp_path / "model.bin", layout)
    with pytest.raises(HeedfulError, match=f"asks for '{name}'") as caught:
        read_bin(path)
    assert caught.value.where == path and caught.value.remedy
    assert not sentinel.exists()


def old_object(name: str) -> bytes:
    return b"(X\x01\x00\x00\x00ai" + name.replace(".", "\n").encode() + b"\n."


def refs(shape: tuple[int, ...], stride: tuple[int, ...], offset: int, count: int = 4) -> Callable[[Path], None]:
    """A file whose tensor claims this shape over a storage of four numbers."""

    class Claims:
        def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
            storage = torch.arange(4.0)._typed_storage()
            return torch._utils._rebuild_tensor_v2, (storage, offset, shape, stride, False, OrderedDict())

    return lambda path: save({"a": Claims()}, path) and None


def in_archive(change: Callable[[dict[str, bytes]], None], **options: Any) -> Callable[[Path], None]:
    """A sound archive with other members."""

    def make(path: Path) -> None:
        save({"a": torch.ones(4)}, path)
        with zipfile.ZipFile(path) as old:
            members = {entry.filename: old.read(entry) for entry in old.infolist()}
        change(members)
        with zipfile.ZipFile(path, "w", **options) as new:
            for name, content in members.items():
                new.writestr(name, content)

    return make


def in_pickle(content: bytes) -> Callable[[Path], None]:
    return in_archive(lambda members: members.update({"model/data.pkl": content}))


def written(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def shortened(layout: str, by: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        content = save({"a": torch.ones(4)}, path, layout).read_bytes()
        path.write_bytes(content[:-by])

    return make


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (written(b""), "no end"),
    "text": (written(b"version https://git-lfs.github.com/spec/v1\n"), "opcode b'v'"),
    "another pickle": (lambda path: path.write_bytes(pickle.dumps(1) * 5) and None, "as torch.save begins"),
    "a training run": (lambda path: save({"a": torch.ones(1), "epoch": 3}, path) and None, "'epoch' is no tensor"),
    "a list": (lambda path: save([torch.ones(1)], path) and None, "dictionary of tensors"),
    "beyond the storage": (refs((5,), (1,), 0), r"\[5\] does not fit into its storage of 4"),
    "beyond by offset": (refs((2,), (1,), 3), "does not fit"),
    "beyond by strides": (refs((2, 2), (3, 1), 0), "does not fit"),
    "spread to fill all memory": (refs((2**40,), (0,), 0), "does not fit"),
    "negative stride": (refs((2,), (-1,), 1), "no sound shape"),
    "negative offset": (refs((2,), (1,), -1), "no sound shape"),
    "strides without shape": (refs((2,), (1, 1), 0), "no sound shape"),
    "many dimensions": (refs((1,) * 65, (1,) * 65, 0), "no sound shape"),
    "short zip": (shortened("zip", 30), "not a zip file"),
    "short legacy": (shortened("legacy", 1), "does not hold the 4 numbers"),
    "compressed": (in_archive(lambda m: None, compression=zipfile.ZIP_DEFLATED), "compressed"),
    "path upwards": (in_archive(lambda m: m.update({"model/../../x": b""})), "path 'model/../../x'"),
    "absolute path": (in_archive(lambda m: m.update({"/etc/passwd": b""})), "path '/etc/passwd'"),
    "no pickle": (in_archive(lambda m: m.pop("model/data.pkl") and None), "one data.pkl"),
    "no storage": (in_archive(lambda m: m.pop("model/data/0") and None), "4 numbers of the storage '0'"),
    "small storage": (in_archive(lambda m: m.update({"model/data/0": b"1234"})), "4 numbers of the storage '0'"),
    "oldest call": (in_pickle(old_object("os.system")), "'os.system'"),
    "oldest call of what is known": (in_pickle(old_object("collections.OrderedDict")), "in a way that torch does not"),
    "call of a value": (in_pickle(b"K\x01)R."), "cannot be called"),
    "too few values": (in_pickle(b"ctorch._utils\n_rebuild_tensor_v2\n)R."), "too few"),
    "no storage type": (in_pickle(b"(X\x07\x00\x00\x00storageK\x01K\x01K\x01K\x01tQ."), "no known type"),
    "no storage id": (in_pickle(b"K\x01Q."), "no storage"),
    "empty stack": (in_pickle(b"."), "empty stack"),
    "no mark": (in_pickle(b"t."), "mark"),
    "nothing kept": (in_pickle(b"h\x01."), "did not keep"),
    "deep stack": (in_pickle(b"N" * (MOST_ON_STACK + 2)), "wait on its stack"),
    "deep marks": (in_pickle(b"(" * (MOST_ON_STACK + 2)), "wait on its stack"),
    "long string": (in_pickle(b"X\xff\xff\xff\x7f" + b"a" * 100_000), "has 2147483647 bytes"),
    "long number": (in_pickle(b"\x8a\xff" + b"a" * 255), "has 255 bytes"),
    "a key of tuples": (in_pickle(b"})" + b"q\x00h\x00\x86" * 60 + b"Ns."), "neither text nor a number"),
    "an object": (in_pickle(b"ccollections\nOrderedDict\n)\x81."), r"opcode b'\\x81'"),
    "attributes of a list": (in_pickle(b"]}b."), "fills a dict"),
    "half a pair": (in_pickle(b"}(X\x01\x00\x00\x00au."), "no value"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path: Path, case: str) -> None:
    make, message = REFUSED[case]
    path = tmp_path / "model.bin"
    make(path)
    with pytest.raises(HeedfulError, match=message) as caught:
        read_bin(path)
    assert str(path) in str(caught.value.where)
    assert caught.value.remedy


def test_an_endless_pickle_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.checkpoints.state_dict_pickle.MOST_OPCODES", 1000)
    path = tmp_path / "model.bin"
    in_pickle(b"}" + b"X\x01\x00\x00\x00aNs" * 400)(path)
    with pytest.raises(HeedfulError, match="more than 1000 steps"):
        read_bin(path)


def test_two_members_with_one_name(tmp_path: Path) -> None:
    path = save({"a": torch.ones(4)}, tmp_path / "model.bin")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("model/data/0", b"0" * 16)
    with pytest.raises(HeedfulError, match="one name"):
        read_bin(path)


def test_a_pickle_made_by_python_2() -> None:
    pairs = b"ccollections\nOrderedDict\n](]U\x01aaK\x01ae\x85R."  # OrderedDict([["a", 1]])
    value, end = read_pickle(memoryview(pairs), 0, "here")
    assert value == {"a": 1} and end == len(pairs)


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_in_an_archive_is_refused_or_harmless(tmp_path: Path, seed: int) -> None:
    wanted = state_dict()
    path = save(wanted, tmp_path / "model.bin")
    content, rng, refused = path.read_bytes(), random.Random(seed), 0
    for _ in range(200):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert same(path, wanted)
        except HeedfulError:
            refused += 1
    assert refused > 20


def as_bin(folder: Path, layout: str) -> Path:
    """A folder of transformers with its weights as transformers wrote them before safetensors."""
    save(OrderedDict(load_file(folder / "model.safetensors")), folder / "pytorch_model.bin", layout)
    (folder / "model.safetensors").unlink()
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    with open_tensors(folder) as tensors:
        return {name: tensors.read(name).clone() for name in tensors}


def assert_same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_folder_with_a_bin_loads_and_embeds(foreign: Callable[[str], Path], tmp_path: Path, layout: str) -> None:
    folder = foreign("BertForPreTraining")
    whole, vectors = weights(folder), heedful.load(folder, "cpu").embed(["abc", "hag"])
    as_bin(folder, layout)
    assert_same(weights(folder), whole)
    assert (heedful.load(folder, "cpu").embed(["abc", "hag"]) == vectors).all()


def test_shards_with_an_index(foreign: Callable[[str], Path]) -> None:
    folder = as_bin(foreign("BertForPreTraining"), "zip")
    whole = weights(folder)
    (folder / "pytorch_model.bin").unlink()
    places = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(whole)}
    for shard in sorted(set(places.values())):
        save({name: tensor for name, tensor in whole.items() if places[name] == shard}, folder / shard)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert_same(weights(folder), whole)
    index.write_text(json.dumps({"weight_map": places | {"x": "../pytorch_model.bin"}}))
    with pytest.raises(HeedfulError, match="not a file of this folder"):
        weights(folder)
