"""Every encoder under every head: fine-tuned on a handful of rows, its answers, its features and its vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.families import family_named
from heedful.errors import HeedfulError
from heedful.inference.scoring import score_lines
from heedful.models.encoder import EncoderConfig
from heedful.models.word2vec import Word2VecConfig
from heedful.text.elmo_pipeline import character_tokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.text.word_tokenizer import word_tokenizer
from heedful.text.xlnet_pipeline import framed_at_the_end

WORDS = ["[UNK]", "the", "cat", "sees", "a", "dog", "loves", "who", ".", "北京", "爱"]
FAMILIES = ("lstm-lm", "elmo", "gpt2", "xlnet", "word2vec")
CONTEXTUAL = FAMILIES[:4]
TEXTS = ["the cat sees", "a dog loves the cat .", "爱北京"]

ROWS: dict[str, list[Any]] = {
    "classify": [(text, label) for text, label in zip(TEXTS * 2, "abcabc", strict=True)],
    "regress": [(text, other, float(i)) for i, (text, other) in enumerate(zip(TEXTS, TEXTS[::-1], strict=True))],
    "tag": [(["the", "cat", "sees"], ["O", "B-A", "O"]), (["a", "dog", "."], ["O", "B-B", "O"])],
    "answer": [
        {"question": "who sees", "context": "the cat sees a dog", "answers": [{"text": "the cat", "answer_start": 0}]},
        {"question": "who loves", "context": "a dog loves", "answers": [{"text": "a dog", "answer_start": 0}]},
    ],
    "choose": [
        {"context": "the cat", "choices": ["sees a dog", "dog"], "label": 0},
        {"context": "a dog", "choices": ["the", "loves the cat"], "label": 1},
    ],
}
ASKED: dict[str, Any] = {
    "classify": "the dog sees",
    "regress": ("the dog", "a cat"),
    "tag": "the dog sees",
    "answer": {"question": "who sees", "context": "the dog sees"},
    "choose": {"context": "the dog", "choices": ["sees", "loves a cat", "the"]},
}


@pytest.fixture(scope="module")
def folders(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A random model of each family."""
    base = tmp_path_factory.mktemp("every")
    tokenizers = {
        "elmo": character_tokenizer(),
        "xlnet": framed_at_the_end(tiny_tokenizer),
        "word2vec": word_tokenizer(WORDS, lowercase=True),
    }
    found = {}
    for name in FAMILIES:
        family, tokenizer = family_named(name), tokenizers.get(name, tiny_tokenizer)
        pieces = 9 if name == "elmo" else tokenizer.vocab_size
        config: EncoderConfig = (
            Word2VecConfig(pieces, 16) if name == "word2vec" else family.config_of_size("nano", pieces)
        )
        model = family.pretraining_model(config)
        family.initialise(model, config, 0)
        save_model(model, base / name, tokenizer)
        found[name] = base / name
    return found


@pytest.fixture
def finetuned(folders: dict[str, Path], tmp_path: Path) -> Callable[..., Any]:
    """A model of a family after two steps on a task."""

    def run(family: str, task: str, **more: Any) -> Any:
        heedful.finetune(
            task, model=folders[family], train=ROWS[task], output=tmp_path / "run", budget="2steps",
            **{"batch_size": 4, "max_length": 64, "learning_rate": 1e-3, **more},
        )  # fmt: skip
        return heedful.load(tmp_path / "run")

    return run


@pytest.mark.parametrize("task", ROWS)
@pytest.mark.parametrize("family", CONTEXTUAL)
def test_every_task_learns_and_answers(finetuned: Any, folders: dict[str, Path], family: str, task: str) -> None:
    model = finetuned(family, task)
    (answer,) = model.predict([ASKED[task]])
    assert answer
    before = heedful.load(folders[family]).encoder.token_matrix
    assert not torch.equal(before, model.encoder.token_matrix)  # the encoder has learned too


@pytest.mark.parametrize("task", ["classify", "regress", "tag", "choose"])
@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_features_leave_the_encoder_as_it_is(
    finetuned: Any, folders: dict[str, Path], family: str, task: str
) -> None:
    layers = (0,) if family == "word2vec" else (0, -1)
    model = finetuned(family, task, features=layers)
    assert model.predict([ASKED[task]])
    assert torch.equal(heedful.load(folders[family]).encoder.token_matrix, model.encoder.token_matrix)


@pytest.mark.parametrize("freeze", [None, "encoder"])
@pytest.mark.parametrize("more", [{"task": "tag", "head": "bilstm"}, {"task": "classify"}, {"task": "choose"}])
def test_word2vec_is_an_embedding_layer_frozen_or_tuned(
    finetuned: Any, folders: dict[str, Path], more: dict[str, str], freeze: str | None
) -> None:
    task = more["task"]
    model = finetuned("word2vec", task, freeze=freeze, **{k: v for k, v in more.items() if k != "task"})
    assert model.predict([ASKED[task]])
    before, after = heedful.load(folders["word2vec"]).encoder.token_matrix, model.encoder.token_matrix
    assert torch.equal(before, after) == (freeze == "encoder")


def test_a_text_of_words_without_context_is_their_mean(finetuned: Any) -> None:
    model = finetuned("word2vec", "classify")
    one, other = model.predict(["the cat sees a dog", "a dog sees the cat"])
    assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)
    assert model.predict(["dog"])[0]["probabilities"] != one["probabilities"]
    assert model.predictor.task.pooling == "mean"


def test_what_makes_no_sense_is_refused_with_a_remedy(finetuned: Any, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match=r"knows nothing of the words around it(.|\n)*`pooling` mean or max"):
        finetuned("word2vec", "classify", pooling="cls")
    with pytest.raises(HeedfulError, match=r"knows nothing of the question(.|\n)*BERT, GPT"):
        finetuned("word2vec", "answer")
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("unit", ["sentence", "word", "token"])
@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_do_not_depend_on_company(folders: dict[str, Path], family: str, unit: str) -> None:
    model = heedful.load(folders[family])
    together = model.embed(TEXTS, unit=unit)
    for text, vectors in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(model.embed([text], unit=unit)[0], vectors, atol=1e-5)
    pooling = "last" if family in ("gpt2", "xlnet") else "mean"
    if unit == "sentence":
        np.testing.assert_array_equal(together, model.embed(TEXTS, pooling=pooling))


@pytest.mark.parametrize(
    ("family", "verb"),
    [("lstm-lm", "generate"), ("gpt2", "generate"), ("xlnet", "generate"), ("elmo", "score"), ("word2vec", "nearest")],
)
def test_only_masked_models_fill_in_and_others_say_what_they_do(
    folders: dict[str, Path], family: str, verb: str
) -> None:
    with pytest.raises(HeedfulError, match=rf"{family} does not guess masked words(.|\n)*`heedful {verb}`"):
        heedful.load(folders[family]).fill("the [MASK]")
    if family == "word2vec":
        with pytest.raises(HeedfulError, match=r"word2vec gives words no probability(.|\n)*`heedful nearest`"):
            next(score_lines(heedful.load(folders[family]), ["the"]))
    if family in ("elmo", "word2vec"):
        with pytest.raises(HeedfulError, match=rf"{family} does not say what comes next(.|\n)*`heedful {verb}`"):
            heedful.load(folders[family]).generate("the")
