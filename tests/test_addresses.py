"""Files at addresses: what is there and how it is written, and clear words where it cannot be."""

from __future__ import annotations

import gzip
import socket
import sys
import uuid
from pathlib import Path
from unittest.mock import Mock

import pytest

from heedful.addresses import Address, place
from heedful.errors import HeedfulError
from heedful.text.documents import read_lines


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """An empty place of a store that is in memory, and of one on the disk."""
    if request.param == "file":
        return Address(f"file://{tmp_path}/store")
    return Address(f"memory://{uuid.uuid4().hex}")


def names(folder: Address) -> list[str]:
    return [one.name for one in folder.iterdir()]


def test_what_is_written_like_an_address_is_one() -> None:
    for text in ("s3://bucket/a.txt", "memory://x", "zip://a.txt::file:///b.zip", "simplecache::https://host/x"):
        assert isinstance(place(text), Address)
    for path in ("a.txt", "-", "/a/b", "C:\\x", "C://x", "a::b.txt", "a:/b", Path("s3://bucket")):
        assert isinstance(place(path), Path)


def test_a_file_appears_whole_or_not_at_all(store: Address) -> None:
    file = store / "deeper" / "a.txt"
    assert not file.exists() and not names(store)
    with file.new_file() as new:
        new.write(b"first\nsecond")
        assert not file.exists()
    with pytest.raises(ValueError, match="trouble"), file.new_file() as new:
        new.write(b"half")
        raise ValueError("trouble")
    assert list(read_lines(file)) == ["first", "second"] and file.size() == 12
    assert names(store / "deeper") == ["a.txt"] and not store.is_file() and store.exists()
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.is_file()


def test_texts_are_read_packed_or_not_and_by_patterns(store: Address, tmp_path: Path) -> None:
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("猫\n狗".encode()))
    (tmp_path / "a.txt").write_text("cat")
    for name in ("a.txt", "b.txt.gz"):
        (store / name).send(tmp_path / name)
    assert [list(read_lines(one)) for one in (store / "*.txt*").matching()] == [["cat"], ["猫", "狗"]]


def refused(address: str | Address) -> str:
    with pytest.raises(HeedfulError) as raised:
        list(read_lines(address))
    assert str(raised.value.where) == address and raised.value.remedy
    return f"{raised.value.what}; {raised.value.remedy}"


def test_what_is_wrong_is_told(store: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no such file" in refused(store / "nothing.txt")
    assert "not understood" in refused("nonsense://a")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "nobody answers" in refused(f"ftp://127.0.0.1:{port}/a.txt")
    with pytest.raises(HeedfulError, match="nothing can be written"), (store / "a*.txt").new_file():
        pass
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert "need another package" in refused("http://127.0.0.1:1/a.txt")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert "pip install 'heedful[remote]'" in refused(store / "a.txt")


def test_what_a_store_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = FileNotFoundError("as HTTP has it")
    hidden.__cause__ = ConnectionRefusedError()
    said = {
        PermissionError("Forbidden"): "no permission",
        NotImplementedError(): "only be read",
        TimeoutError(): "nobody answers",
        hidden: "nobody answers",
    }
    for error, what in said.items():
        monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.info", Mock(side_effect=error))
        monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem._open", Mock(side_effect=error))
        assert what in refused("memory://closed/a.txt")
        with pytest.raises(HeedfulError, match=what):
            Address("memory://closed/a.txt").is_file()
