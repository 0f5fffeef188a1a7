"""Vectors at an address: the bytes of a file on a path, and continued after an interruption, part by part."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heedful.addresses import Address
from heedful.errors import HeedfulError
from heedful.inference import vector_parts
from heedful.inference.embed_file import EmbedProgress, embed_file
from heedful.inference.embedder import Embedder
from heedful.inference.features import Features

Sentences = Callable[[int], list[str]]


class Stop(Exception):
    """The interruption."""


def interrupted(texts: list[str], after: int) -> Iterator[str]:
    yield from texts[:after]
    raise Stop


def write(model: Embedder, texts: object, where: object, kind: str, unit: str, **rest: object) -> EmbedProgress:
    return embed_file(model, texts, where, Features(unit=unit), kind=kind, **rest)  # type: ignore[arg-type]


def content(folder: Address) -> dict[str, bytes]:
    return {one.name: one.open().read() for one in folder.iterdir()}


@pytest.fixture(autouse=True)
def parts_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_parts, "PART_SECONDS", -1.0)


@pytest.fixture
def store() -> Address:
    return Address(f"memory://{uuid.uuid4().hex}")


@pytest.mark.parametrize(
    ("kind", "unit", "scheme"),
    [("npy", "word", "memory"), ("safetensors", "token", "file"), ("jsonl", "token", "memory")],
)
def test_an_interrupted_output_is_finished_to_the_bytes_of_a_path(
    tiny: Embedder, sentences: Sentences, tmp_path: Path, store: Address, kind: str, unit: str, scheme: str
) -> None:
    store = store if scheme == "memory" else Address(f"file://{tmp_path}/store")
    texts, path = sentences(3 * 64 + 2), tmp_path / "local" / f"x.{kind}"
    write(tiny, texts, path, kind, unit)
    where = store / path.name
    for stop in (2 * 64 + 3, 3 * 64 + 1):
        with pytest.raises(Stop):
            write(tiny, interrupted(texts, stop), where, kind, unit)
        assert not where.exists()
    assert write(tiny, texts, where, kind, unit).resumed == 2 * 64
    assert content(store) == {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert write(tiny, texts, where, kind, unit).there


def test_what_is_in_the_way_is_refused_or_replaced(tiny: Embedder, store: Address) -> None:
    where = store / "x.npy"
    with pytest.raises(Stop):
        write(tiny, interrupted(["cat"] * 140, 139), where, "npy", "token")
    with pytest.raises(HeedfulError, match="other settings"):
        write(tiny, ["cat"], where, "npy", "word")
    part = next(one for one in store.iterdir() if ".partial.0" in one.name)
    with part.new_file() as file:
        file.write(b"damaged")
    with pytest.raises(HeedfulError, match="a part of the output is damaged"):
        write(tiny, ["cat"] * 140, where, "npy", "token")
    assert not where.exists()
    part.unlink()
    assert write(tiny, ["cat"] * 140, where, "npy", "token").resumed == 0
    with pytest.raises(HeedfulError, match="another input"):
        write(tiny, ["dog"], where, "npy", "token")
    with pytest.raises(HeedfulError, match="no texts"):
        write(tiny, [], where, "npy", "token", overwrite=True)
    assert write(tiny, ["dog"], where, "npy", "sentence", overwrite=True).texts == 1
    assert [one.name for one in store.iterdir()] == ["x.lengths.npy", "x.npy", "x.npy.origin.json"]


def test_a_store_that_takes_nothing_is_told_before_anything_is_computed(
    tiny: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbids(*_: object, **__: object) -> None:
        raise PermissionError("Forbidden")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.makedirs", forbids)
    monkeypatch.setattr(tiny, "chunks", lambda *_: pytest.fail("something was computed"))
    with pytest.raises(HeedfulError, match="no permission"):
        write(tiny, ["cat"], "memory://closed/x.npy", "npy", "sentence")
