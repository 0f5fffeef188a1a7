"""Files that are on no path of this machine: an address, SCHEME://…, is read and written through fsspec.

A place is a `Path`, or else an `Address`, which has those of its methods that are needed here. fsspec is imported when
the first address is used, so that nothing is asked of a store that the user has not named.

A new file is written beside its place under a hidden temporary name and moved when it is whole: on a disk by renaming,
in an object store by a copy, which appears whole too.
"""

from __future__ import annotations

import io
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from heedful.errors import HeedfulError

# One letter before a colon is a drive of Windows.
_SCHEME = re.compile(r"(?:[A-Za-z][\w+.-]+::)*([A-Za-z][\w+.-]+)://")
# What fsspec takes for a pattern or a chain: good for reading, but there is no such name to write to.
_NOT_WRITTEN = re.compile(r"[*?\[]|::")
# Each store has errors of its own; that nobody answered can be told by their names alone.
_UNANSWERED = re.compile("Connect|Timeout|Disconnected|gaierror")
_PIECE = 1 << 20
# How far a store is read ahead where only a stretch of a file is wanted; some take 50 MB by themselves.
_AHEAD = 4 << 20


class Address(str):
    """The text that says where a file or folder is in a store; the store is asked only when a method is called."""

    __slots__ = ()

    def __truediv__(self, name: str) -> Address:
        """What is called `name` in the folder of this address."""
        return Address(f"{self.rstrip('/')}/{name}")

    @property
    def scheme(self) -> str:
        """The part before ://, which names the kind of store."""
        found = _SCHEME.match(self)
        return found[1] if found else ""

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(str(self)).name

    @property
    def suffix(self) -> str:
        """How the name ends, from its last dot."""
        return PurePosixPath(str(self)).suffix

    def with_name(self, name: str) -> Address:
        """Another name beside this one."""
        return Address(f"{self.rstrip('/').rpartition('/')[0]}/{name}")

    def absolute(self) -> Address:
        """The same: an address means the same to everybody."""
        return self

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return self._facts() is not None

    def is_file(self) -> bool:
        """Whether there is a file."""
        facts = self._facts()
        return facts is not None and facts["type"] != "directory"

    def size(self) -> int:
        """The bytes of the file; 0 if there is none."""
        return int((self._facts() or {}).get("size") or 0)

    def iterdir(self) -> Iterator[Address]:
        """What is in the folder, if there is one; not what is in its subfolders."""
        with _plain_errors(self):
            store, path = self._store()
            try:
                found = store.ls(path, detail=False)
            except FileNotFoundError:
                found = []
        names = {PurePosixPath(one).name for one in found if one.rstrip("/") != path.rstrip("/")}
        return (self / name for name in sorted(names - {""}))

    def matching(self) -> list[Address]:
        """The files that an address with * stands for, by name; any other stands for itself."""
        if "*" not in self or "::" in self:
            return [self]
        with _plain_errors(self):
            store, path = self._store()
            return [Address(store.unstrip_protocol(one)) for one in sorted(store.glob(path))]

    @property
    def has_ranges(self) -> bool:
        """Whether some of a file can be read without what stands before it; over HTTP that hangs on the server."""
        return self.scheme not in ("http", "https") and "::" not in self

    def open(self, start: int = 0) -> BinaryIO:
        """The file, to be read from its beginning or from a byte of it; its errors are told with the address."""
        with _plain_errors(self):
            store, path = self._store()
            if not start:
                return io.BufferedReader(_Stream(store.open(path, "rb"), self), _PIECE)
            file = store.open(path, "rb", block_size=_AHEAD)
            file.seek(start)
            return io.BufferedReader(_Stream(file, self), _PIECE)

    def read_range(self, start: int, stop: int) -> bytes:
        """The bytes start … stop of the file."""
        with _plain_errors(self):
            store, path = self._store()
            return cast("bytes", store.cat_file(path, start=start, end=stop))

    def read_text(self, encoding: str = "utf-8") -> str:
        """All of a small file."""
        with self.open() as file:
            return file.read().decode(encoding)

    def fetch(self, target: Path) -> None:
        """Copy a file to a path."""
        with self.open() as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy, _PIECE)

    @contextmanager
    def new_file(self) -> Iterator[IO[bytes]]:
        """A file to write front to back; it takes its place when the block ends well."""
        _check_written(self)
        with _plain_errors(self):
            store, path = self._store()
            folder, _, name = path.rpartition("/")
            temporary = f"{folder}/.{name}.{secrets.token_hex(4)}.tmp"
            if folder:
                store.makedirs(folder, exist_ok=True)
            file = _Stream(store.open(temporary, "wb"), self)
        try:
            yield cast("IO[bytes]", file)
            file.close()
            with _plain_errors(self):
                store.mv(temporary, path)
        except BaseException:
            _remove_quietly(store, temporary, file)
            raise

    def send(self, source: Path) -> None:
        """Copy the file at a path, or each file of a folder, to this address."""
        if source.is_dir():
            for one in sorted(source.iterdir()):
                (self / one.name).send(one)
            return
        with self.new_file() as file, source.open("rb") as original:
            shutil.copyfileobj(original, file, _PIECE)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        with _plain_errors(self):
            store, path = self._store()
            try:
                store.rm_file(path)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def _facts(self) -> dict[str, Any] | None:
        with _plain_errors(self):
            store, path = self._store()
            try:
                return cast("dict[str, Any]", store.info(path))
            except FileNotFoundError as error:
                if _unanswered(error):
                    raise
                return None

    def _store(self) -> tuple[Any, str]:
        """The store, and what the address is called inside of it."""
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            what = "an address is read and written through fsspec, which is not installed"
            raise HeedfulError(what, where=self, remedy="pip install 'heedful[remote]'") from None
        try:
            store, path = url_to_fs(str(self))
        except ValueError as error:
            remedy = "check what stands before ://; some stores come with a package of their own, as s3fs or gcsfs"
            raise HeedfulError(f"this address is not understood: {error}", where=self, remedy=remedy) from None
        store.invalidate_cache()  # others write there too
        return store, path


def place(given: str | Path) -> Path | Address:
    """Where something is: an address if it is written as one, else a path."""
    return Address(given) if isinstance(given, str) and _SCHEME.match(given) else Path(given)


@contextmanager
def working_copy(where: Path | Address, fetch: bool = True) -> Iterator[Path]:
    """A path to work at: the place itself, or for the time of the block a copy of the file or folder at an address.

    There is nothing yet at the path of a copy if nothing is there to copy, or without `fetch`.
    """
    if isinstance(where, Path):
        yield where
        return
    with tempfile.TemporaryDirectory(prefix="heedful-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / where.name
        if fetch:
            _fetch(where, copy)
        yield copy


def check_reach(where: Path | Address) -> None:
    """Refuse a place that other processes do not have."""
    if isinstance(where, Address) and where.scheme == "memory":
        what = "what one process keeps in its memory, the others do not see"
        raise HeedfulError(what, where=where, remedy="work with one process, or name another address")


def send(source: Path, where: Path | Address) -> None:
    """Bring a working copy to its place; what was worked on at its place is there already."""
    if isinstance(where, Address):
        where.send(source)


def _fetch(where: Address, copy: Path) -> None:
    if where.is_file():
        where.fetch(copy)
        return
    for one in where.iterdir():
        copy.mkdir(exist_ok=True)
        one.fetch(copy / one.name)


class _Stream(io.RawIOBase):
    """A file of a store, whose errors are told plainly; under Python's own buffer its lines are read fast."""

    def __init__(self, file: Any, address: Address) -> None:
        self._file, self._address = file, address

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _plain_errors(self._address):
            piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def write(self, content: Any) -> int:
        with _plain_errors(self._address):
            self._file.write(content)
        return len(content)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with _plain_errors(self._address):
            self._file.close()


def _check_written(address: Address) -> None:
    if _NOT_WRITTEN.search(address):
        what = "nothing can be written to an address with *, ?, [ or ::"
        raise HeedfulError(what, where=address, remedy="give the plain address of a file or folder")


def _remove_quietly(store: Any, path: str, file: _Stream) -> None:
    """Remove a temporary file after an error, which is the one to be told."""
    for step in (file.close, lambda: store.rm_file(path)):
        with suppress(Exception):
            step()


@contextmanager
def _plain_errors(address: Address) -> Iterator[None]:
    """Tell the user what a store says, each of which has exceptions of its own."""
    try:
        yield
    except HeedfulError:
        raise
    except Exception as error:
        what, remedy = _told(error)
        raise HeedfulError(what, where=address, remedy=remedy) from error


def _told(error: Exception) -> tuple[str, str]:
    lines = str(error).strip().splitlines()
    said = lines[0] if lines else type(error).__name__
    if _unanswered(error):
        return f"nobody answers ({said})", "check host and network, and start again: what is done is kept"
    match error:
        case FileNotFoundError():
            return "no such file", "check the address"
        case PermissionError():
            return f"no permission ({said})", "see that the keys which fsspec finds on this machine are good for it"
        case ImportError():
            return f"such addresses need another package ({said})", "install it beside heedful"
        case NotImplementedError():
            return "such addresses can only be read", "write to a path, or to a store that takes files"
    return f"the store refuses ({said})", "check the address, and what the store allows"


def _unanswered(error: BaseException | None) -> bool:
    """Whether it comes of nobody answering; over HTTP that is told as a missing file."""
    if error is None:
        return False
    known = isinstance(error, ConnectionError | TimeoutError) or _UNANSWERED.search(type(error).__name__)
    return bool(known) or _unanswered(error.__cause__)
