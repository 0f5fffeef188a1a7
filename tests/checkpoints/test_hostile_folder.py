"""A model folder made to do harm: nothing of it is run, nothing outside of it is read, and what it is gets told."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import read_folder
from heedful.errors import HeedfulError
from heedful.inference.load import load

PROGRAMS = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class", "socket.__new__"}
_seen: set[str] = set()
_listening = False


def _hook(event: str, _: object) -> None:
    if _listening and event in PROGRAMS:
        _seen.add(event)


sys.addaudithook(_hook)  # it cannot be taken away again


@pytest.fixture(autouse=True)
def nothing_is_run() -> Iterator[None]:
    global _listening
    _seen.clear()
    _listening = True
    yield
    _listening = False
    assert not _seen


def refused(folder: Path) -> str:
    with pytest.raises(HeedfulError) as caught:
        load_encoder(read_folder(folder))
    return str(caught.value)


def header_of_many(count: int) -> bytes:
    one = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps({f"bert.encoder.layer.0.x{i}": one for i in range(count)}).encode()
    return struct.pack("<Q", len(text)) + text


def test_a_hundred_thousand_tensors_are_refused(foreign: Callable[[str], Path]) -> None:
    folder = foreign("BertModel")
    (folder / "model.safetensors").write_bytes(header_of_many(100_000))
    said = refused(folder)
    assert "bert.encoder.layer.0.x" in said
    assert len(said) < 2000  # not all of them are listed


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/hostname", "a/b.safetensors", "..", "a\\b", "x\0y"])
def test_an_index_names_files_of_its_own_folder_only(foreign: Callable[[str], Path], name: str) -> None:
    folder = foreign("BertModel")
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"weight_map": {"bert.embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "not a file of this folder" in refused(folder)


def test_code_that_lies_in_the_folder_is_never_run(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    folder, sentinel = foreign("BertModel"), tmp_path / "sentinel"
    code = f"open({str(sentinel)!r}, 'w')\n"
    for name in ("modeling.py", "__init__.py", "configuration.py", "tokenization.py", "sitecustomize.py"):
        (folder / name).write_text(code)
    file = folder / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling.Mine"}}))
    assert "never run" in refused(folder)
    file.write_text(json.dumps(config))
    load(folder).embed(["abc"])
    assert not sentinel.exists()


def test_a_pickle_under_the_name_of_sound_weights_is_refused(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    folder, sentinel = foreign("BertModel"), tmp_path / "sentinel"
    evil = f"cposix\nsystem\n(S'touch {sentinel}'\ntR.".encode()
    for name in ("model.safetensors", "pytorch_model.bin"):
        for path in folder.glob("*.safetensors"):
            path.unlink()
        (folder / name).write_bytes(evil)
        assert refused(folder)
        assert not sentinel.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX signals")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
@pytest.mark.parametrize("to", ["itself", "nowhere", "a pipe", "/dev/zero"])
def test_a_link_that_leads_nowhere_good_is_refused_and_nobody_waits(
    foreign: Callable[[str], Path], tmp_path: Path, name: str, to: str
) -> None:
    folder = foreign("BertModel")
    os.mkfifo(tmp_path / "pipe")
    target = {"itself": folder / name, "nowhere": tmp_path / "none", "a pipe": tmp_path / "pipe"}.get(to, Path(to))
    (folder / name).unlink()
    (folder / name).symlink_to(target)
    if name == "vocab.txt":
        found = read_folder(folder)
        assert found.tokenizer is None and any("tokenizer" in note for note in found.notes)
    else:
        assert refused(folder)


def test_links_to_sound_files_are_followed_as_caches_of_downloads_have_them(
    foreign: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, blobs = foreign("BertModel"), tmp_path / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(blobs / str(number))
        path.symlink_to(blobs / str(number))
    assert load(folder).embed(["abc"]).shape == (1, 16)
