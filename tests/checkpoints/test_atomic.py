from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

from heedful.atomic import atomic_file, atomic_folder, atomic_path
from heedful.checkpoints.tensors import write_tensors
from heedful.errors import HeedfulError

FullDisk = Callable[[int], AbstractContextManager[None]]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.txt"
    with atomic_file(target) as file:
        file.write("你好")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "你好"
    assert names(target.parent) == ["a.txt"]


def test_the_old_file_survives_an_error(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_file(target, "wb") as file:
        file.write(b"half of the ne")
        raise KeyboardInterrupt
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_full_disk_keeps_the_old_file_and_says_so(tmp_path: Path, full_disk: FullDisk) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with (
        full_disk(1000),
        pytest.raises(HeedfulError, match=r"too large.*unchanged") as caught,
        atomic_file(target, "wb") as file,
    ):
        file.write(b"x" * 100_000)
    assert caught.value.remedy is not None and "space" in caught.value.remedy
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_full_disk_keeps_the_old_folder(tmp_path: Path, full_disk: FullDisk) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old.txt").write_text("old")
    with full_disk(1000), pytest.raises(HeedfulError, match="unchanged"), atomic_folder(target, overwrite=True) as new:
        write_tensors(new, {"x": torch.zeros(10_000)})
    assert names(target) == ["old.txt"]
    assert names(tmp_path) == ["model"]


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for name in ("first", "second"):
        with atomic_folder(target, overwrite=True) as new:
            (new / "inner").mkdir()
            (new / "inner" / name).write_text(name)
    assert names(target / "inner") == ["second"]
    assert names(tmp_path) == ["model"]


def test_the_old_folder_comes_back_when_the_swap_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old.txt").write_text("old")
    replace = Path.replace

    def failing(self: Path, other: Path) -> Path:
        if self.suffix == ".tmp":
            raise OSError(5, "Input/output error", str(self))
        return replace(self, other)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(HeedfulError, match="Input/output"), atomic_folder(target, overwrite=True) as new:
        (new / "new.txt").write_text("new")
    assert names(target) == ["old.txt"]
    assert names(tmp_path) == ["model"]


def test_a_folder_with_something_in_it_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(HeedfulError, match="not empty"), atomic_folder(tmp_path):
        pass
    with pytest.raises(HeedfulError, match="is a file"), atomic_folder(tmp_path / "a.txt"):
        pass
    with pytest.raises(HeedfulError, match="is a folder"), atomic_path(tmp_path):
        pass
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_file(tmp_path / "link.txt") as file:
        file.write("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_other_errors_of_the_block_pass_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "a.txt"):
        Path("no such input").read_text()
    with pytest.raises(BrokenPipeError), atomic_file(tmp_path / "a.txt"):
        raise BrokenPipeError
    assert names(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="needs an ordinary user: root may write anywhere")
def test_a_place_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(HeedfulError, match="Permission denied"), atomic_file(tmp_path / "a.txt"):
        pass
