"""GPT and LSTM by the command line: pretrained, resumed exactly, and used under heads and for vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file
from transformers import GPT2LMHeadModel

from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.load import load_embedder

OPTIONS = ("--size", "nano", "--phases", "16:50%,32:50%", "--budget", "6steps", "--batch-size", 8, "--lr", 1e-2)
MODELS = ("gpt", "lstm")


def in_process(*arguments: object, expected: int = 0) -> Result:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == expected, done.output
    return done


def refused(*arguments: object) -> str:
    """What the user reads."""
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small corpus of toy documents, and a run of each model."""
    folder = tmp_path_factory.mktemp("language-models")
    text, held_out = folder / "toy" / "documents.en.txt", folder / "toy" / "heldout.en.txt"
    in_process("toy", folder / "toy", "--size", "small")
    in_process("tokenizer", "train", text, "-o", folder / "tokenizer", "--vocab-size", 400)
    corpus = ("corpus", "build", text, "-o", folder / "corpus", "--tokenizer", folder / "tokenizer")
    in_process(*corpus, "--held-out-file", held_out)
    for model in MODELS:
        in_process(*run(folder, model))
    return folder


def run(folder: Path, model: str) -> tuple[object, ...]:
    return ("pretrain", folder / "corpus", "-o", folder / model, "--model", model, *OPTIONS, "--checkpoint-every", 2)


@pytest.mark.parametrize("model", MODELS)
def test_a_resumed_run_ends_with_the_same_weights(world: Path, model: str) -> None:
    whole = load_file(world / model / "model" / "model.safetensors")
    (world / model / "model" / "model.safetensors").unlink()
    last = sorted((world / model / "checkpoints").glob("step-*"))[-1]
    (last / "manifest.json").write_text("damaged")
    assert "resumed from step-000004" in in_process(*run(world, model), "--resume").stderr
    again = load_file(world / model / "model" / "model.safetensors")
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)


@pytest.mark.parametrize("model", MODELS)
def test_a_run_tells_of_held_out_text(world: Path, model: str) -> None:
    lines = [json.loads(line) for line in (world / model / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    told = next(line for line in lines if "evaluation" in line)
    scores = told["evaluation"]
    assert scores["lm_perplexity"] == pytest.approx(np.exp(scores["lm_loss"]))
    assert {"unigram_loss", "bigram_loss"} <= set(scores) and len(told["examples"]) == 4
    assert "heedful generate" in (world / model / "model" / "README.md").read_text(encoding="utf-8")


def test_hugging_face_loads_what_gpt_leaves(world: Path) -> None:
    theirs, info = GPT2LMHeadModel.from_pretrained(world / "gpt" / "model", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tokenizer = load_embedder(world / "gpt").tokenizer
    assert (theirs.config.bos_token_id, theirs.config.eos_token_id) == (tokenizer.cls_id, tokenizer.sep_id)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [
        ("classify", "sentiment.en/train.tsv", ()),
        ("regress", "similarity.en/train.tsv", ()),
        ("tag", "tags.en/train.conll", ()),
        ("answer", "roles.en/train.json", ("--max-length", 96)),
        ("choose", "choices.en/train.jsonl", ()),
        ("classify", "sentiment.en/train.tsv", ("--features", "-1")),
        ("tag", "tags.en/train.conll", ("--features", "-1,-2", "--head", "bilstm")),
    ],
)
def test_every_head_takes_them(
    world: Path, tmp_path: Path, model: str, kind: str, data: str, options: tuple[str, ...]
) -> None:
    start = ("finetune", kind, "--model", world / model, "--train", world / "toy" / data, "-o", tmp_path / "run")
    in_process(*start, "--budget", "2steps", "--batch-size", 4, *options)
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize(("model", "pooling"), [("gpt", "last"), ("lstm", "mean")])
def test_a_text_becomes_a_vector_by_the_pooling_that_suits(world: Path, model: str, pooling: str) -> None:
    loaded = load_embedder(world / model)
    texts = ["the cat sees a dog.", "a dog"]
    np.testing.assert_array_equal(loaded.embed(texts), loaded.embed(texts, pooling=pooling))
    other = "mean" if pooling == "last" else "last"
    assert not np.allclose(loaded.embed(texts), loaded.embed(texts, pooling=other))


@pytest.mark.parametrize("model", MODELS)
def test_settings_without_effect_and_the_wrong_verb_are_refused(world: Path, tmp_path: Path, model: str) -> None:
    for option in (("--mask-rate", 0.3), ("--pairs", "none"), ("--single-sentences",), ("--duplicates", 2)):
        message = refused("pretrain", world / "corpus", "-o", tmp_path / "x", "--model", model, *option)
        assert f"{option[0]} has no effect" in message
    assert "heedful generate" in refused("fill", world / model, "a [MASK]")
    assert not (tmp_path / "x").exists()


def test_a_blank_line_among_prompts_begins_from_nothing(world: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("the cat\n\n")
    done = in_process("generate", world / "gpt", "--file", tmp_path / "prompts.txt", "--max-tokens", 3, "--json")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["prompt"] == "the cat" and second["prompt"] == ""
    assert "1 of 2 prompts are blank" in done.stderr and "prompts.txt" in done.stderr
    alone = in_process("generate", world / "gpt", "--max-tokens", 3, "--json")
    assert json.loads(alone.stdout)["text"] == second["text"]
