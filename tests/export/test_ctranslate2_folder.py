"""What is exported computes the same in CTranslate2."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

from heedful.checkpoints.translation_folder import TranslationFolder, load_translation
from heedful.decoding import Beam, Hypothesis, Sampling
from heedful.errors import HeedfulError
from heedful.export.ctranslate2_folder import export_ctranslate2
from heedful.inference.load import load_translator
from heedful.models.bert import BertConfig
from heedful.models.transformer import Transformer, TransformerConfig, with_encoder
from heedful.tasks.translate_search import search
from heedful.text.sides import Symbols

KINDS = ("transformer", "pre-norm")
WORDS = ["the", "cat", "sees", "love", "dog", "中国", "我爱", "北京。", "zebra!", "unaffordable"]


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tiny_translators: dict[str, Path]) -> TranslationFolder:
    return load_translation(tiny_translators[request.param])


@pytest.fixture(scope="module")
def engine(folder: TranslationFolder, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("export") / "model"
    export_ctranslate2(folder, path)
    return ctranslate2.Translator(str(path), compute_type="float32", inter_threads=1, intra_threads=1)


def texts(count: int) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 8))) for _ in range(count)]


def ours(folder: TranslationFolder, sources: list[list[int]], how: Beam) -> list[list[Hypothesis]]:
    """By our search, with nothing banned, as the other engine has it."""
    symbols = Symbols.of(folder.sides.target)._replace(banned=())
    return search(folder.model, sources, [16] * len(sources), symbols, how)


def test_greedy_output_and_scores_are_the_same(folder: TranslationFolder, engine: Any) -> None:
    encodings = folder.sides.source.encode_batch(texts(60))
    found = engine.translate_batch(
        [encoding.tokens[1:-1] for encoding in encodings],
        beam_size=1,
        max_decoding_length=16,
        min_decoding_length=0,  # by itself it wants a symbol before the end
        return_scores=True,
        length_penalty=0,
    )
    pieces = folder.sides.target.vocabulary
    for result, (expected,) in zip(found, ours(folder, [e.ids for e in encodings], Beam(1)), strict=True):
        assert result.hypotheses[0] == [pieces[i] for i in expected.ids]
        assert result.scores[0] == pytest.approx(expected.log_probability, abs=1e-4)


def test_a_beam_finds_the_same(folder: TranslationFolder, engine: Any) -> None:
    encodings = folder.sides.source.encode_batch(texts(60))
    found = engine.translate_batch(
        [encoding.tokens[1:-1] for encoding in encodings],
        beam_size=4,
        max_decoding_length=16,
        min_decoding_length=0,  # by itself it wants a symbol before the end
        return_scores=True,
        length_penalty=0,
    )
    expected = ours(folder, [e.ids for e in encodings], Beam(4, 0.0))
    pieces = folder.sides.target.vocabulary
    same = [
        result.hypotheses[0] == [pieces[i] for i in best.ids]
        and result.scores[0] == pytest.approx(best.log_probability, abs=1e-4)
        for result, (best, *_) in zip(found, expected, strict=True)
    ]
    assert sum(same) >= 0.9 * len(same)  # the two may part where a beam drops what the other keeps


def test_scores_of_references_are_the_same(
    folder: TranslationFolder, engine: Any, tiny_translators: dict[str, Path]
) -> None:
    pairs = list(zip(texts(20), reversed(texts(20)), strict=True))
    encoded = [(folder.sides.source.encode(s), folder.sides.target.encode(t)) for s, t in pairs]
    found = engine.score_batch([s.tokens[1:-1] for s, _ in encoded], [t.tokens[1:-1] for _, t in encoded])
    expected = load_translator(folder.path, "cpu").score(pairs)
    assert [sum(one.log_probs) for one in found] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_engine_is_a_choice(folder: TranslationFolder, beam: int) -> None:
    mine, other = (load_translator(folder.path, "cpu", engine) for engine in ("heedful", "ctranslate2"))
    found, expected = (one.hypotheses(["", *texts(30)], Beam(beam, 1.0), 12) for one in (other, mine))
    same = [a[0].text == b[0].text for a, b in zip(found, expected, strict=True)]
    assert sum(same) >= 0.9 * len(same) and found[0] == expected[0]
    for mine_one, other_one, alike in zip(expected, found, same, strict=True):
        if alike:  # the other engine deals out what banned symbols would have got
            assert other_one[0].finished == mine_one[0].finished
            assert other_one[0].score == pytest.approx(mine_one[0].score, abs=0.2)


def test_the_other_engine_draws_no_samples(tiny_translators: dict[str, Path]) -> None:
    other = load_translator(tiny_translators["transformer"], "cpu", "ctranslate2")
    with pytest.raises(HeedfulError, match="samples"):
        other.hypotheses(["the cat"], Sampling())


@pytest.mark.processor
def test_the_tokenizers_go_along_and_nothing_is_overwritten(folder: TranslationFolder, tmp_path: Path) -> None:
    export_ctranslate2(folder, tmp_path / "a", "int8")
    names = {file.name for file in (tmp_path / "a").iterdir()}
    assert "model.bin" in names
    assert "tokenizer.json" in names or {"source", "target"} <= names
    before = (tmp_path / "a" / "model.bin").read_bytes()
    with pytest.raises(HeedfulError, match="not empty"):
        export_ctranslate2(folder, tmp_path / "a")
    assert (tmp_path / "a" / "model.bin").read_bytes() == before
    export_ctranslate2(folder, tmp_path / "a", overwrite=True)
    assert len((tmp_path / "a" / "model.bin").read_bytes()) > len(before)


def test_what_has_no_place_there_is_refused(tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    recurrent = load_translation(tiny_translators["rnn"])
    with pytest.raises(HeedfulError, match="recurrent"):
        export_ctranslate2(recurrent, tmp_path / "a")
    size = recurrent.sides.source.vocab_size
    bert = BertConfig(size, 32, 1, 2, 48)
    config = with_encoder(TransformerConfig(size, size, True, 1, 1, 32, 2, 48), bert)
    with pytest.raises(HeedfulError, match="BERT"):
        export_ctranslate2(
            TranslationFolder(tmp_path, Transformer(config).eval(), recurrent.sides, ("a", "b")), tmp_path / "a"
        )
    with pytest.raises(HeedfulError, match="float32"):
        export_ctranslate2(load_translation(tiny_translators["transformer"]), tmp_path / "a", "int3")
    assert not (tmp_path / "a").exists()


def test_rows_without_a_piece_do_no_harm(folder: TranslationFolder, tmp_path: Path) -> None:
    """A table may have more rows than the tokenizer has pieces."""
    size = folder.sides.target.vocab_size + 3
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(size, size, True, 1, 1, 32, 2, 48)).eval()
    larger = TranslationFolder(tmp_path, model, folder.sides, ("a", "b"))
    export_ctranslate2(larger, tmp_path / "a")
    assert ctranslate2.Translator(str(tmp_path / "a")).translate_batch([["the", "cat"]], max_decoding_length=3)
