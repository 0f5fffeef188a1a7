"""Files and folders that appear whole or not at all.

What is new is written beside its place under a hidden temporary name, brought to the disk, and renamed. Whoever reads
a file sees the old or the new, and when anything goes wrong on the way the old stays as it was.

Replacing a folder takes two renames, the old one away and the new one in: between them nothing is at its place, and a
crash just then leaves both whole under hidden names (`.NAME.….old` and `.NAME.….tmp`) beside it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from heedful.errors import HeedfulError

# Where a folder can be opened like a file, its names can be brought to the disk; Windows does that by itself, and wants
# a file to be open for writing.
_FOLDERS_OPEN = hasattr(os, "O_DIRECTORY")
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DISK_TROUBLE = _DISK_FULL | {errno.EIO, errno.EROFS}


@contextmanager
def atomic_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """An open file (`mode` is "w" for UTF-8 text or "wb") that takes its place at `path` when the block ends well."""
    with atomic_path(path) as temporary, temporary.open(mode, encoding=None if "b" in mode else "utf-8") as file:
        yield file


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A name to write a file under; the file moves to `path` when the block ends well."""
    target, temporary = _places(path)
    if target.is_dir():
        raise HeedfulError(f"{target.name} is a folder, not a file", where=target, remedy="give the name of a file")
    with plain_write_errors(target, temporary):
        try:
            yield temporary
            _sync(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(target.parent)


@contextmanager
def atomic_folder(path: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """A new empty folder to fill; it becomes `path` when the block ends well.

    A folder that holds something is replaced only with `overwrite`, and then as a whole.
    """
    target, temporary = _places(path)
    _check_replaceable(target, overwrite)
    with plain_write_errors(target, temporary):
        temporary.mkdir()
        try:
            yield temporary
            _sync_tree(temporary)
            _swap(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _sync(target.parent)


def check_free(path: str | Path, overwrite: bool = False) -> None:
    """Refuse a file that is there already, before any work is done for it, unless it is to be overwritten."""
    if Path(path).is_file() and not overwrite:
        remedy = "name another file, or replace it with `overwrite`"
        raise HeedfulError("this file is there already", where=path, remedy=remedy)


def _places(path: str | Path) -> tuple[Path, Path]:
    """The real target, so that a link stays a link, and a fresh name beside it; the parent is made if need be."""
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    with plain_write_errors(target, temporary):
        make_folder(target.parent)
    return target, temporary


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; their names are on the disk before anything inside is relied upon."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        _sync(one.parent)


def _check_replaceable(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise HeedfulError(f"{target.name} is a file, not a folder", where=target, remedy="give the name of a folder")
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise HeedfulError("the folder is not empty", where=target, remedy="name a new folder, or use `overwrite`")


def _swap(new: Path, target: Path) -> None:
    """Put `new` in the place of the folder `target`.

    A folder cannot be renamed onto a full one, so the old one steps aside first; it is removed last, and put back if
    the second rename fails.
    """
    if not target.exists():
        new.replace(target)
        return
    old = new.with_suffix(".old")
    target.replace(old)
    try:
        new.replace(target)
    except OSError:
        old.replace(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    """Bring a file's bytes, or a folder's list of names, to the disk."""
    if path.is_dir() and not _FOLDERS_OPEN:
        return
    descriptor = os.open(path, os.O_RDONLY if _FOLDERS_OPEN else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def plain_write_errors(target: Path, temporary: Path | None = None) -> Iterator[None]:
    """Tell the user about trouble with our own files; other errors of the block pass through."""
    try:
        yield
    except OSError as error:
        name = str(error.filename or "")
        ours = name == str(target.parent) or name.startswith((str(target), str(temporary or target)))
        if not ours and error.errno not in _DISK_TROUBLE:
            raise
        kept = "what was there before is unchanged" if target.exists() else "nothing was written"
        advice = (
            "free some space or write to another disk" if error.errno in _DISK_FULL else "see that it may be written"
        )
        raise HeedfulError(f"cannot write: {error.strerror}; {kept}", where=target, remedy=advice) from error
