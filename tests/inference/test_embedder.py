"""`model.embed`: limits, warnings, streams, and one vector for one text in any company."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Library
from torch import nn

import heedful
from heedful.errors import HeedfulError
from heedful.inference.embedder import TEXTS_PER_CHUNK, Embedder, TruncationWarning

pytestmark = pytest.mark.processor

Sentences = Callable[[int], list[str]]


def test_the_same_text_gives_the_same_vector_alone_and_in_any_batch(tiny: Embedder, sentences: Sentences) -> None:
    texts = sentences(2 * TEXTS_PER_CHUNK["sentence"] + 5)  # enough for the worker pool
    raw, unit = np.asarray(tiny.embed(texts)), np.asarray(tiny.embed(texts, normalize=True))
    for number in (0, 1, 700, 1024, 2052):
        np.testing.assert_allclose(tiny.embed([texts[number]])[0], raw[number], rtol=0, atol=2e-5)
        np.testing.assert_allclose(tiny.embed([texts[number]], normalize=True)[0], unit[number], rtol=0, atol=1e-6)
    some = texts[5:40]
    np.testing.assert_allclose(tiny.embed(some[::-1]), raw[5:40][::-1], rtol=0, atol=2e-5)


@pytest.mark.parametrize("unit", ["word", "token"])
def test_words_and_tokens_are_the_same_in_any_batch(tiny: Embedder, sentences: Sentences, unit: str) -> None:
    texts = sentences(3 * TEXTS_PER_CHUNK[unit] + 1)
    for text, vectors in zip(texts[::50], list(tiny.embed(texts, unit=unit))[::50], strict=True):
        np.testing.assert_allclose(tiny.embed([text], unit=unit)[0], vectors, rtol=0, atol=2e-5)


@pytest.mark.parametrize("unit", ["sentence", "word", "token"])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_stream_gives_what_a_list_gives(tiny: Embedder, sentences: Sentences, unit: str, count: int) -> None:
    texts = sentences(count)
    streamed = list(tiny.embed_stream(iter(texts), unit=unit))
    listed = tiny.embed(texts, unit=unit)
    assert len(streamed) == len(listed) == count
    for one, other in zip(streamed, listed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_stream_reads_no_further_than_it_must(tiny: Embedder) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "cat"

    stream = tiny.embed_stream(endless())
    assert next(stream).shape == (32,)
    assert read <= 3 * TEXTS_PER_CHUNK["sentence"]
    stream.close()  # type: ignore[attr-defined]


def test_no_texts_give_an_empty_array(tiny: Embedder) -> None:
    assert np.asarray(tiny.embed([], layers=[-1, -2])).shape == (0, 64)
    assert tiny.embed([], unit="word") == []


def test_many_threads_may_use_one_model(tiny: Embedder, sentences: Sentences) -> None:
    texts = sentences(300)
    expected = np.asarray(tiny.embed(texts))
    before = torch.get_num_threads()
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: tiny.embed(texts), range(8)):
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("layers", "calls"), [([-1], 3), ([0], 0), ([1, 0], 1), ([-2], 2)])
def test_only_the_layers_asked_for_are_computed(tiny_folder: Path, layers: list[int], calls: int) -> None:
    model = heedful.load(tiny_folder, "cpu")
    called: list[nn.Module] = []
    for layer in model.encoder.layers:
        layer.register_forward_hook(lambda module, *_: called.append(module))
    model.embed(["cat"], layers=layers)
    assert called == list(model.encoder.layers)[:calls]


def test_truncation_is_told_and_keeps_the_left_part(tiny: Embedder) -> None:
    with pytest.warns(TruncationWarning, match="2 of 3 texts were longer than 5 tokens"):
        cut = tiny.embed(["the cat sees dog", "cat", "a b c d e f"], max_length=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = tiny.embed(["the cat sees", "cat", "a b c"], max_length=5)
    np.testing.assert_allclose(cut, whole, rtol=0, atol=2e-5)


def test_the_folders_own_limit_is_the_smallest_of_what_it_says(
    tiny: Embedder, tiny_folder: Path, tmp_path: Path
) -> None:
    assert tiny.limit(None) == 512 and tiny.limit(7) == 7
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    (copy / "sentence_bert_config.json").write_text('{"max_seq_length": 9}')
    model = heedful.load(copy, "cpu")
    assert model.limit(None) == 9 and model.limit(512) == 512
    with pytest.warns(TruncationWarning, match="9 tokens"):
        model.embed(["a " * 20])


def test_truncation_and_padding_baked_into_tokenizer_json_are_ignored(tiny_folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    library = Library.from_file(str(copy / "tokenizer.json"))
    library.enable_truncation(4)
    library.enable_padding(length=16)
    library.save(str(copy / "tokenizer.json"))
    assert [len(v) for v in heedful.load(copy, "cpu").embed(["a b c d e f g"], unit="token")] == [9]


@pytest.mark.parametrize("length", [513, 2, 1])
def test_a_limit_that_cannot_be_is_refused(tiny: Embedder, length: int) -> None:
    with pytest.raises(HeedfulError, match=f"max_length {length}"):
        tiny.embed(["cat"], max_length=length)


def test_a_single_string_is_refused_rather_than_taken_letter_by_letter(tiny: Embedder) -> None:
    with pytest.raises(HeedfulError, match="single string"):
        tiny.embed("cat")
    with pytest.raises(HeedfulError, match="single string"):
        tiny.attention("cat")


def test_a_single_layer_is_to_be_a_list(tiny: Embedder) -> None:
    with pytest.raises(HeedfulError, match=r"layers is -1\n.*such as \[-1\]"):
        tiny.embed(["cat"], layers=-1)  # type: ignore[arg-type]


def test_something_that_is_no_text_is_named(tiny: Embedder) -> None:
    with pytest.raises(HeedfulError, match="text number 2 of this batch is of type int"):
        tiny.embed(["cat", 5])  # type: ignore[list-item]


def test_similarity_is_the_cosine(tiny: Embedder) -> None:
    vectors = np.asarray(tiny.embed(["cat", "the dog", "中国"]))
    lengths = np.linalg.norm(vectors, axis=1)
    by_hand = vectors @ vectors.T / np.outer(lengths, lengths)
    np.testing.assert_allclose(tiny.similarity(["cat", "the dog", "中国"]), by_hand, atol=1e-6)


def test_the_folder_may_name_its_pooling(tiny: Embedder, tiny_folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    kinds = ("Transformer", "Pooling")
    modules = ", ".join(f'{{"path": "{"1" * i}", "type": "x.{kind}"}}' for i, kind in enumerate(kinds))
    (copy / "modules.json").write_text(f"[{modules}]")
    (copy / "1").mkdir()
    (copy / "1" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    model = heedful.load(copy, "cpu")
    np.testing.assert_array_equal(model.embed(["the cat"]), tiny.embed(["the cat"], pooling="cls"))
    np.testing.assert_array_equal(model.embed(["the cat"], pooling="max"), tiny.embed(["the cat"], pooling="max"))


@pytest.mark.parametrize("device", ["cuda:99", "toaster", "meta"])
def test_a_device_that_is_not_there_is_refused(tiny_folder: Path, device: str) -> None:
    with pytest.raises(HeedfulError, match=device):
        heedful.load(tiny_folder, device)


def test_a_folder_without_tokenizer_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    for name in ("tokenizer.json", "vocab.txt"):
        (copy / name).unlink()
    with pytest.raises(HeedfulError, match="no tokenizer"):
        heedful.load(copy)
