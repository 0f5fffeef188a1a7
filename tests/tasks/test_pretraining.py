"""The pretraining losses, against Hugging Face's on the same weights and batch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertForPreTraining

from heedful.checkpoints.encoder_folder import load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.data.corpus.examples import Examples
from heedful.data.corpus.source import PretrainingMicroBatch
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.tasks.pretraining import evaluate, filled_in, guess, pretraining_losses
from heedful.text.tokenizer import Tokenizer

CONFIG = BertConfig(
    vocab_size=97,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=64,
    initializer_range=0.3,
)


def model() -> BertForPretraining:
    made = BertForPretraining(CONFIG)
    initialise(made, CONFIG, seed=1)
    return made.eval()


def micro_batch(rng: np.random.Generator, nsp: bool = True) -> PretrainingMicroBatch:
    lengths = [40, 40, 17, 9, 5]
    sequences = [rng.integers(5, 97, n).tolist() for n in lengths]
    batch = flat_batch(sequences, [[0] * (n // 2) + [1] * (n - n // 2) for n in lengths])
    masked = torch.from_numpy(np.sort(rng.choice(sum(lengths), 16, replace=False)))
    labels = torch.from_numpy(rng.integers(5, 97, 16))
    pairs = torch.from_numpy(rng.integers(0, 2, len(lengths)))
    return PretrainingMicroBatch(batch, masked, labels, pairs if nsp else None, padding=0)


def padded(one: PretrainingMicroBatch) -> dict[str, torch.Tensor]:
    labels = torch.full_like(one.batch.ids, -100)
    labels[one.masked] = one.labels
    columns = {
        "input_ids": (one.batch.ids, 0),
        "token_type_ids": (one.batch.segments, 0),
        "attention_mask": (torch.ones_like(labels), 0),
        "labels": (labels, -100),
    }
    pad = torch.nn.utils.rnn.pad_sequence
    return {
        name: pad(list(flat.split(one.batch.lengths)), batch_first=True, padding_value=value)
        for name, (flat, value) in columns.items()
    }


def test_the_loss_is_that_of_hugging_face(tmp_path: Path) -> None:
    ours = model()
    save_model(ours, tmp_path / "model", None)
    theirs = BertForPreTraining.from_pretrained(tmp_path / "model").eval()
    one = micro_batch(np.random.default_rng(0))
    losses = pretraining_losses(ours, one)
    mean = sum(float(losses[name].detach()) / one.counts[name] for name in ("mlm", "nsp"))
    expected = theirs(**padded(one), next_sentence_label=one.nsp).loss
    assert mean == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_last_layer_at_some_rows_is_the_whole_layer_at_those_rows() -> None:
    ours, one = model(), micro_batch(np.random.default_rng(1))
    rows = torch.tensor([0, 3, 41, 110])
    torch.testing.assert_close(
        ours.encoder.states_at(one.batch, rows), ours.encoder(one.batch).last[rows], rtol=1e-5, atol=1e-6
    )


def test_gradients_do_not_depend_on_where_the_last_layer_is_computed() -> None:
    ours, one = model(), micro_batch(np.random.default_rng(2))
    gradients = []
    for states in (
        lambda: ours.encoder.states_at(one.batch, one.masked),
        lambda: ours.encoder(one.batch).last[one.masked],
    ):
        ours.zero_grad()
        torch.nn.functional.cross_entropy(ours.mlm_logits(states()), one.labels, reduction="sum").backward()
        gradients.append([parameter.grad.clone() for parameter in ours.encoder.layers.parameters()])
    for some, whole in zip(*gradients, strict=True):
        torch.testing.assert_close(some, whole, rtol=1e-4, atol=1e-5)


def test_without_pairs_there_is_one_loss() -> None:
    ours, one = model(), micro_batch(np.random.default_rng(3), nsp=False)
    assert set(pretraining_losses(ours, one)) == {"mlm"} == set(one.counts)
    assert guess(ours, one).nsp is None


def test_evaluation_counts_right_answers_over_all_micro_batches() -> None:
    ours = model()
    micro_batches = [micro_batch(np.random.default_rng(seed)) for seed in range(3)]
    with torch.no_grad():
        for one in micro_batches:  # so that some guesses are right, and not all
            one.labels[::3] = guess(ours, one).mlm.argmax(-1)[::3]
        found = evaluate(ours, micro_batches)
        guesses = [guess(ours, one) for one in micro_batches]
    answers = {
        "mlm": (torch.cat([one.mlm for one in guesses]), torch.cat([one.labels for one in micro_batches])),
        "nsp": (torch.cat([one.nsp for one in guesses]), torch.cat([one.nsp for one in micro_batches])),
    }
    for name, (logits, truth) in answers.items():
        right = float((logits.argmax(-1) == truth).float().mean())
        assert 0 < right < 1
        assert found[f"{name}_accuracy"] == pytest.approx(right)
        loss = float(torch.nn.functional.cross_entropy(logits, truth))
        assert found[f"{name}_loss"] == pytest.approx(loss, rel=1e-5)
    assert found["mlm_perplexity"] == pytest.approx(np.exp(found["mlm_loss"]))


def hidden_examples(tokenizer: Tokenizer) -> Examples:
    """Three examples, of which the second hides a token behind another one and the third none behind [MASK]."""
    id_of = tokenizer.id_of
    texts = [
        ("[CLS] the [MASK] sees un [MASK] ##able [MASK] . [SEP]", {2: "cat", 5: "##afford", 7: "dog"}),
        ("[CLS] the dog sees [MASK] [SEP]", {2: "cat", 4: "中"}),
        ("[CLS] love ##s [SEP]", {1: "love"}),
    ]
    pieces = [text.split() for text, _ in texts]
    lengths = np.array([len(some) for some in pieces])
    starts = np.cumsum(lengths) - lengths
    masked = [int(start) + place for start, (_, hidden) in zip(starts, texts, strict=True) for place in hidden]
    return Examples(
        numbers=np.arange(3),
        lengths=lengths,
        ids=np.array([id_of(piece) for some in pieces for piece in some]),
        segments=np.zeros(int(lengths.sum()), np.int64),
        masked=np.array(masked),
        labels=np.array([id_of(word) for _, hidden in texts for word in hidden.values()]),
        nsp=None,
    )


@torch.no_grad()
def test_hidden_words_are_shown_with_the_likeliest_guesses(tiny_folder: Path, tiny_tokenizer: Tokenizer) -> None:
    ours = load_for_pretraining(read_folder(tiny_folder), seed=0)
    theirs = BertForPreTraining.from_pretrained(tiny_folder).eval()
    examples = hidden_examples(tiny_tokenizer)
    shown = filled_in(ours, examples, tiny_tokenizer, top=4)
    assert [(one["text"], one["truth"]) for one in shown] == [
        ("the [MASK] sees un [___]able [MASK] . [SEP]", "##afford"),
        ("the dog sees [___] [SEP]", "中"),
    ]
    for one, (start, stop, place) in zip(shown, [(0, 10, 5), (10, 16, 4)], strict=True):
        logits = theirs(torch.from_numpy(examples.ids[start:stop])[None]).prediction_logits[0, place]
        values, ids = logits.softmax(-1).topk(4)
        assert [word for word, _ in one["guesses"]] == [tiny_tokenizer.vocabulary[i] for i in ids]
        assert [value for _, value in one["guesses"]] == pytest.approx(values.tolist(), abs=1e-4)
        assert all(isinstance(value, float) and 0 < value < 1 for _, value in one["guesses"])
    json.dumps(shown)  # as the journal will write it


@torch.no_grad()
def test_long_surroundings_are_cut(tiny_folder: Path, tiny_tokenizer: Tokenizer) -> None:
    ours = load_for_pretraining(read_folder(tiny_folder), seed=0)
    first, second = filled_in(ours, hidden_examples(tiny_tokenizer), tiny_tokenizer, around=2, top=1)
    assert (first["text"], second["text"]) == ("sees un [___]able [MASK]", "dog sees [___] [SEP]")
    assert len(first["guesses"]) == 1


@torch.no_grad()
def test_rows_without_a_piece_are_never_guessed(tiny_tokenizer: Tokenizer) -> None:
    pieces = tiny_tokenizer.vocab_size
    config = replace(CONFIG, vocab_size=pieces + 8)
    wide = BertForPretraining(config)
    initialise(wide, config, seed=1)
    wide.eval()
    examples = hidden_examples(tiny_tokenizer)
    before = filled_in(wide, examples, tiny_tokenizer, top=3)
    (bias,) = [parameter for parameter in wide.parameters() if parameter.shape == (pieces + 8,)]
    bias[pieces:] = 3.0  # the likeliest by far are now rows that have no piece
    after = filled_in(wide, examples, tiny_tokenizer, top=3)
    for one, other in zip(before, after, strict=True):
        assert [word for word, _ in one["guesses"]] == [word for word, _ in other["guesses"]]
        assert all(big > small for (_, big), (_, small) in zip(one["guesses"], other["guesses"], strict=True))
