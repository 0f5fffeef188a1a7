"""What keeps an output of `embed` from being spoiled: locks, names, and promises that outlive an interruption."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import HeedfulError
from heedful.inference.embed_file import embed_file
from heedful.inference.embedder import Embedder, TruncationWarning
from heedful.inference.features import Features
from heedful.inference.vector_file import VectorFile
from heedful.inference.vector_layout import VectorLayout
from heedful.text.documents import read_texts

SENTENCES = Features()
WORDS = Features(unit="word")


def test_two_processes_cannot_write_one_output(tmp_path: Path) -> None:
    request, layout = {"features": "any"}, VectorLayout("npy", 4, ragged=False)
    with VectorFile(tmp_path / "out.npy", layout, request):
        second = VectorFile(tmp_path / "out.npy", layout, request)
        with pytest.raises(HeedfulError, match="another process"), second:
            pass
    with VectorFile(tmp_path / "out.npy", layout, request):
        pass  # the first has let go


def test_outputs_that_differ_in_their_ending_keep_their_own_lengths(tiny: Embedder, tmp_path: Path) -> None:
    embed_file(tiny, ["the cat"], tmp_path / "run.en", WORDS)
    embed_file(tiny, ["the cat sees the dog"], tmp_path / "run.zh", WORDS)
    assert np.load(tmp_path / "run.en.lengths.npy").tolist() == [2]
    assert np.load(tmp_path / "run.zh.lengths.npy").tolist() == [5]


def test_truncate_error_is_kept_when_an_output_is_resumed(tiny: Embedder, tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    texts = ["cat " * 40, "dog"]

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.inference.vector_file.COMMIT_EVERY", -1.0)
        patch.setattr(VectorFile, "finish", lambda *_: interrupted())
        with pytest.raises(KeyboardInterrupt):
            embed_file(tiny, texts, path, SENTENCES, max_length=8)
    with pytest.raises(HeedfulError, match="1 texts of the unfinished output"):
        embed_file(tiny, texts, path, SENTENCES, max_length=8, truncate="error")
    assert embed_file(tiny, texts, path, SENTENCES, max_length=8).truncated == 1


def test_a_stream_tells_of_truncation_too(tiny: Embedder) -> None:
    with pytest.warns(TruncationWarning, match="1 of 2 texts"):
        list(tiny.embed_stream(["cat " * 40, "dog"], max_length=8))
    with pytest.raises(HeedfulError, match="single string"):
        list(tiny.embed_stream("a text"))


def test_a_generator_of_texts_is_as_good_as_a_list(tiny: Embedder) -> None:
    texts = ["the cat", "the dog sees"]
    assert np.array_equal(tiny.embed(text for text in texts), tiny.embed(texts))


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("one\ntwo\n"))
    writer.start()
    assert not pipe.is_file()
    assert list(read_texts(pipe)) == ["one", "two"]
    writer.join()
