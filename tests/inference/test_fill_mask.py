"""Filling masks: against `transformers`' BertForMaskedLM, and the refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

import heedful
from heedful.checkpoints.encoder_folder import load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.fill_mask import fill_mask
from heedful.inference.masked_lm import MaskedLm, load_mlm_head

CASES = [
    ("the [MASK] sees the dog", None),
    ("[MASK] 爱 北京 [MASK] 。", None),
    ("the cat [MASK]", "unaffordable [MASK] 苹果"),
]


@pytest.fixture(scope="module")
def lm(tiny: Embedder) -> MaskedLm:
    return MaskedLm(tiny.encoder, load_mlm_head(tiny.folder), tiny.tokenizer)


@pytest.fixture(scope="module")
def theirs(tiny_folder: Path) -> transformers.BertForMaskedLM:
    return transformers.BertForMaskedLM.from_pretrained(tiny_folder).eval()


@pytest.mark.parametrize(("text", "pair"), CASES)
def test_equal_to_transformers(lm: MaskedLm, theirs: transformers.BertForMaskedLM, text: str, pair: str | None) -> None:
    encoding = lm.tokenizer.encode(text, pair)
    with torch.inference_mode():
        ids, segments = (torch.tensor([x]) for x in (encoding.ids, encoding.type_ids))
        expected = theirs(input_ids=ids, token_type_ids=segments).logits[0].softmax(-1)
    blanks = fill_mask(lm, text, pair, top=7)
    assert [blank.position for blank in blanks] == [i for i, t in enumerate(encoding.tokens) if t == "[MASK]"]
    for blank in blanks:
        values, numbers = expected[blank.position].topk(7)
        assert [guess.id for guess in blank.guesses] == numbers.tolist()
        torch.testing.assert_close(torch.tensor([g.probability for g in blank.guesses]), values, rtol=1e-4, atol=1e-6)
        assert [g.word for g in blank.guesses] == [lm.tokenizer.vocabulary[g.id] for g in blank.guesses]


def test_equal_to_the_fill_mask_pipeline(lm: MaskedLm, tiny_folder: Path) -> None:
    model = transformers.BertForMaskedLM.from_pretrained(tiny_folder)
    tokenizer = transformers.BertTokenizerFast(str(tiny_folder / "vocab.txt"))
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, device="cpu", top_k=5)
    expected = pipeline("the [MASK] loves 中国")
    (blank,) = fill_mask(lm, "the [MASK] loves 中国")
    assert [guess.id for guess in blank.guesses] == [row["token"] for row in expected]
    assert [guess.probability for guess in blank.guesses] == pytest.approx([row["score"] for row in expected], rel=1e-4)


def test_a_folder_that_transformers_saved_without_pooler_and_nsp(
    lm: MaskedLm, theirs: transformers.BertForMaskedLM, tmp_path: Path
) -> None:
    theirs.save_pretrained(tmp_path)
    lm.tokenizer.save(tmp_path)
    loaded = heedful.load(tmp_path, "cpu")
    again = MaskedLm(loaded.encoder, load_mlm_head(loaded.folder), loaded.tokenizer)
    assert fill_mask(again, "the [MASK]") == fill_mask(lm, "the [MASK]")


def test_all_probabilities_add_up_to_one(lm: MaskedLm) -> None:
    (blank,) = fill_mask(lm, "[MASK]", top=10_000)
    assert len(blank.guesses) == lm.tokenizer.vocab_size
    assert sum(guess.probability for guess in blank.guesses) == pytest.approx(1.0, abs=1e-5)


def test_the_longest_text_fits_and_one_token_more_does_not(lm: MaskedLm) -> None:
    assert fill_mask(lm, "[MASK] " * 510, top=1)[-1].position == 510
    with pytest.raises(HeedfulError, match="513 tokens, more than the model's 512"):
        fill_mask(lm, "[MASK] " * 511)


@pytest.mark.parametrize(("text", "top", "message"), [("the cat", 5, r"no \[MASK\]"), ("[MASK]", 0, "top is 0")])
def test_refusals(lm: MaskedLm, text: str, top: int, message: str) -> None:
    with pytest.raises(HeedfulError, match=message):
        fill_mask(lm, text, top=top)


def test_a_folder_without_the_head_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    whole = read_folder(tiny_folder)
    save_model(load_for_pretraining(whole, seed=0).encoder, tmp_path / "bare", whole.tokenizer)
    with pytest.raises(HeedfulError, match="no MLM head"):
        load_mlm_head(read_folder(tmp_path / "bare"))
