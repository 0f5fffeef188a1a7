"""A corpus at an address, copied to this machine, where its shards can be mapped into memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from heedful.addresses import Address, working_copy
from heedful.atomic import atomic_folder, atomic_path
from heedful.data.shards import check_file, file_digest
from heedful.errors import HeedfulError
from heedful.text.words import cache_folder

# Files on their way at a time: a store answers many at once, and one alone slowly.
AT_ONCE = 8
_SHARD = re.compile(r"(train|held_out)-\d{5,}\.safetensors")


def fetched(corpus: Address, manifest: Mapping[str, Any], tokenizer: str, verify: bool = False) -> Path:
    """A copy in the user's cache folder, every shard held against its checksum as it comes.

    What is there already is not fetched again, with `verify` only if it is still what it was.
    """
    folder = cache_folder() / "corpora" / str(manifest["checksum"])
    if not (folder / tokenizer).is_dir():
        with working_copy(corpus / tokenizer) as copy, atomic_folder(folder / tokenizer, overwrite=True) as new:
            for file in sorted(copy.iterdir()):
                (new / file.name).write_bytes(file.read_bytes())
    entries = [entry for part in ("train", "held_out") for entry in manifest["shards"][part]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(lambda entry: _fetch_shard(corpus, entry, folder, verify), entries):
            pass
    return folder


def _fetch_shard(corpus: Address, entry: Mapping[str, Any], folder: Path, verify: bool) -> None:
    name = entry["name"]
    if not _SHARD.fullmatch(name):  # it would be written somewhere else
        raise HeedfulError(f"no shard is called {name!r}", where=corpus, remedy="build the corpus again")
    path = folder / name
    there = path.is_file() and path.stat().st_size == entry["bytes"]
    if there and not (verify and file_digest(path) != entry["checksum"]):
        return
    with atomic_path(path) as new:
        (corpus / name).fetch(new)
        check_file(new, entry["bytes"], entry["checksum"], where=corpus / name)
