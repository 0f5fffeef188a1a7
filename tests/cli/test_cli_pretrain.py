"""`heedful pretrain`: budgets and phases are understood, a small run ends with a model, and resuming is exact."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import astuple
from html import escape
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertForPreTraining

from heedful.cli.main import cli
from heedful.data.corpus.corpus import Corpus
from heedful.errors import HeedfulError
from heedful.runs.budget import Budget, parse_budget
from heedful.runs.pretraining.held_out import sentences_of
from heedful.runs.pretraining.plan import Plan, batch_size_of, parse_phases, steps_of
from heedful.runs.pretraining.plan import stretches as stretches_of
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.tasks.masked_objective import held_out_examples
from heedful.tasks.objectives import MLM
from heedful.text.tokenizer import Tokenizer
from heedful.training.run_folder import RunFolder


def heedful(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def in_process(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def pretrain(world: Path, run: str, *more: object) -> Result:
    return in_process("pretrain", world / "corpus", "-o", world / run, *OPTIONS, *more)


def refused(done: Result) -> str:
    """What the user reads."""
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small corpus of toy documents."""
    folder = tmp_path_factory.mktemp("pretrain")
    for command in (
        "toy world --size small",
        "tokenizer train world/documents.en.txt -o tokenizer --vocab-size 400",
        "corpus build world/documents.en.txt -o corpus --tokenizer tokenizer --held-out-file world/heldout.en.txt",
    ):
        done = heedful(*command.split(), folder=folder)
        assert done.returncode == 0, done.stderr
    return folder


OPTIONS = ("--size", "tiny", "--phases", "32:50%,64:50%", "--budget", "6steps", "--batch-size", 8)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("30m", Budget(seconds=1800)),
        ("1.5h", Budget(seconds=5400)),
        ("90s", Budget(seconds=90)),
        ("20000steps", Budget(steps=20000)),
        ("20ksteps", Budget(steps=20000)),
        ("50Mtokens", Budget(tokens=50e6)),
    ],
)
def test_budgets(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize("text", ["", "30", "Mm", "5Ms", "-3steps", "many steps", "0steps"])
def test_a_budget_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(HeedfulError, match=r"not understood|is nothing"):
        parse_budget(text)


def test_phases() -> None:
    assert parse_phases("128:90%,512:10%") == [(128, 0.9, None), (512, 0.1, None)]
    assert parse_phases("128x8:50%, 128x32:50%") == [(128, 0.5, 8), (128, 0.5, 32)]
    for text in ("128", "128:90%", "128:60%,512:60%", "x:100%", "0:100%", "128x0:100%", "128x:100%", "x8:100%"):
        with pytest.raises(HeedfulError, match="phases"):
            parse_phases(text)


def test_a_step_keeps_its_tokens_when_examples_grow() -> None:
    assert batch_size_of(512, 128, 32) == 8


def test_the_phases_together_use_up_the_budget() -> None:
    shares, tokens = (0.9, 0.1), (4096, 8192)
    assert steps_of(Budget(steps=100), shares, tokens, list) == [90, 10]
    by_tokens = steps_of(Budget(tokens=1e6), shares, tokens, list)
    assert sum(s * n for s, n in zip(by_tokens, tokens, strict=True)) == pytest.approx(1e6, rel=0.02)
    by_time = steps_of(Budget(seconds=60), shares, tokens, lambda: (0.1, 0.3))
    assert by_time[0] * 0.1 + by_time[1] * 0.3 == pytest.approx(60, rel=0.02)


@torch.inference_mode()
def pseudo_perplexity(theirs: BertForPreTraining, corpus: Path) -> float:
    """Of the held-out sentences a run scores, by Hugging Face: each as a batch of copies with one token masked."""
    opened, losses = Corpus.open(corpus), []
    for ids in map(torch.tensor, sentences_of(opened, longest=64)):
        copies = ids.repeat(len(ids) - 2, 1)
        copy, place = torch.arange(len(copies)), torch.arange(1, len(ids) - 1)
        copies[copy, place] = opened.tokenizer.mask_id
        found = theirs.eval()(input_ids=copies).prediction_logits[copy, place].log_softmax(-1)
        losses.append(-found[copy, ids[1:-1]])
    return float(torch.cat(losses).mean().exp())


def test_a_run_ends_with_a_model_that_hugging_face_loads(world: Path) -> None:
    done = heedful("pretrain", "corpus", "-o", "run", *OPTIONS, "--pairs", "nsp", folder=world)
    assert done.returncode == 0, done.stderr
    run = world / "run"
    theirs, info = BertForPreTraining.from_pretrained(run / "model", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    told = next(line for line in lines if "evaluation" in line)
    evaluation, examples = told["evaluation"], told["examples"]
    assert {"mlm_loss", "mlm_accuracy", "nsp_accuracy", "unigram_loss", "bigram_loss"} <= set(evaluation)
    assert evaluation["pseudo_perplexity"] == pytest.approx(pseudo_perplexity(theirs, world / "corpus"), rel=1e-5)
    assert 1 <= len(examples) <= 4
    report, shown = (run / "report.html").read_text(encoding="utf-8"), " ".join(done.stderr.split())
    for example in examples:
        assert escape(example["text"]) in report and f"truth: {example['truth']}" in shown
        assert escape(example["guesses"][0][0]) in report
    timing = json.loads((run / "timing.json").read_text())
    assert sum(timing["parts"].values()) == pytest.approx(timing["wall"], rel=0.02)
    assert "held-out" in (run / "model" / "README.md").read_text()
    assert "- computed on " in (run / "model" / "README.md").read_text()


def test_words_come_first_and_pairs_last(world: Path) -> None:
    done = heedful("pretrain", "corpus", "-o", "last", *OPTIONS, "--pairs", "nsp", "--pairs-share", 0.7, folder=world)
    assert done.returncode == 0, done.stderr
    told = "2 steps of 8 examples of up to 32 tokens, words alone, then 1 steps of 32 examples of up to 32 tokens, then"
    assert told in " ".join(done.stderr.split()) and told[:40] in (world / "last/model/README.md").read_text()
    plan, corpus = RunFolder(world / "last").stored_as(Plan), Corpus.open(world / "corpus")
    assert (plan.lengths, plan.batch_sizes, plan.steps) == ((32, 32, 64), (8, 32, 16), (2, 1, 3))
    steps = [plan.source(corpus, MLM).step(number) for number in range(6)]
    assert [micro_batch.nsp is not None for (micro_batch,) in steps] == [False, False, True, True, True, True]
    losses = [row for row in RunFolder(world / "last").metrics.read_text().splitlines() if '"nsp"' in row]
    assert losses and '"step": 6' in losses[-1]


@pytest.mark.parametrize(
    ("share", "stretches"),
    [
        (0.05, [(128, 0.9, 16, True), (512, 0.05, 4, True), (512, 0.05, 16, False)]),
        (0.1, [(128, 0.9, 16, True), (512, 0.1, 16, False)]),
        (0.3, [(128, 0.7, 16, True), (128, 0.2, 64, False), (512, 0.1, 16, False)]),
        (1.0, [(128, 0.9, 16, False), (512, 0.1, 4, False)]),
    ],
)
def test_phases_are_cut_where_pairs_begin(share: float, stretches: list[tuple[int, float, int, bool]]) -> None:
    asked = PretrainingSettings("", "", pairs="nsp", pairs_share=share, batch_size=16, phases="128:90%,512:10%")
    assert [astuple(one) for one in stretches_of(asked)] == stretches


@pytest.mark.parametrize(
    ("phases", "stretches"),
    [
        ("128x8:50%,128x32:50%", [(128, 0.5, 8, True), (128, 0.2, 32, True), (128, 0.3, 128, False)]),
        ("64x8:50%,128:50%", [(64, 0.5, 8, True), (128, 0.2, 8, True), (128, 0.3, 32, False)]),
    ],
)
def test_a_phase_may_have_a_batch_size_of_its_own(phases: str, stretches: list[tuple[int, float, int, bool]]) -> None:
    asked = PretrainingSettings("", "", pairs="nsp", pairs_share=0.3, batch_size=16, phases=phases)
    assert [astuple(one) for one in stretches_of(asked)] == stretches


def test_batches_grow(world: Path) -> None:
    asked = ("--size", "tiny", "--phases", "32x4:50%,32x8:50%", "--budget", "4steps")
    assert in_process("pretrain", world / "corpus", "-o", world / "growing", *asked).exit_code == 0
    plan, corpus = RunFolder(world / "growing").stored_as(Plan), Corpus.open(world / "corpus")
    assert (plan.batch_sizes, plan.steps) == ((4, 8), (2, 2))
    batches = [plan.source(corpus, MLM).step(number)[0].batch for number in range(4)]
    assert [len(batch.lengths) for batch in batches] == [4, 4, 8, 8]


def test_a_share_of_pairs_without_pairs_is_refused(world: Path) -> None:
    assert "no effect without pairs" in refused(pretrain(world, "none", "--pairs-share", 0.5))


def test_a_resumed_run_ends_with_the_same_weights(world: Path) -> None:
    options = ("--checkpoint-every", 2, "--seed", 3)
    assert pretrain(world, "run-of-6", *options).exit_code == 0
    file = world / "run-of-6" / "model" / "model.safetensors"
    whole = file.read_bytes()
    file.unlink()
    last = sorted((world / "run-of-6" / "checkpoints").glob("step-*"))[-1]
    (last / "manifest.json").write_text("damaged")
    done = heedful("pretrain", world / "corpus", "-o", "run-of-6", *OPTIONS, *options, "--resume", folder=world)
    assert done.returncode == 0 and "resumed from step-000004" in done.stderr, done.stderr
    assert file.read_bytes() == whole


def test_the_share_of_hidden_tokens_is_for_training_only(world: Path) -> None:
    done = pretrain(world, "many", "--mask-rate", 0.5, "--schedule", "cosine", "--beta2", 0.98)
    assert done.exit_code == 0, done.output
    plan, corpus = RunFolder(world / "many").stored_as(Plan), Corpus.open(world / "corpus")
    assert (plan.training.schedule, plan.training.beta2) == ("cosine", 0.98)
    assert plan.longest.max_length == 64
    hidden = MLM.batches(corpus, plan.longest).examples.take(np.arange(50))
    usual = held_out_examples(corpus, plan.longest).take(np.arange(9))
    assert 0.4 < len(hidden.labels) / len(hidden.ids) < 0.55
    assert 0.1 < len(usual.labels) / len(usual.ids) < 0.2


def test_other_settings_and_running_twice_are_refused(world: Path) -> None:
    assert pretrain(world, "once").exit_code == 0
    assert "--resume" in refused(pretrain(world, "once"))
    assert "seed was 0, is now 9" in refused(pretrain(world, "once", "--seed", 9, "--resume"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "corpus"),
        (("corpus", "--size", "giant"), "giant"),
        (("corpus", "--set", "hidden_sise=64"), "hidden_size"),
        (("corpus", "--set", "hidden_size=wide"), "--set"),
        (("corpus", "--phases", "1024:100%"), "positions"),
        (("corpus", "--masking", "word"), "`words`"),
        (("corpus", "--masking", "letter"), "masking"),
        (("corpus", "--mask-rate", "1.5"), "a mask rate of 1.5"),
    ],
)
def test_bad_options_are_told_plainly(world: Path, arguments: tuple[str, ...], message: str) -> None:
    corpus, *options = arguments
    done = in_process("pretrain", world / corpus, "-o", world / "x", *options, "--budget", "2steps")
    assert message in refused(done)
    assert not (world / "x").exists()


@pytest.fixture(scope="module")
def field(world: Path) -> Path:
    """Beside the small corpus: a model of its tokenizer, and the same text with words that the model does not have."""
    (world / "words.txt").write_text("photosynthesis\nChloroplast\nthe\n")
    text, held_out = world / "world" / "documents.en.txt", world / "world" / "heldout.en.txt"
    for command in (
        ("new", world / "model", "--tokenizer", world / "tokenizer", "--size", "tiny", "--seed", 5),
        ("tokenizer", "extend", world / "model", "--words", world / "words.txt", "--from-text", text, "--count", 6,
         "-o", world / "wider"),
        ("corpus", "build", text, "-o", world / "wider-corpus", "--tokenizer", world / "wider",
         "--held-out-file", held_out),
    ):  # fmt: skip
        done = in_process(*command)
        assert done.exit_code == 0, done.output
    return world


def go_on(field: Path, corpus: str, model: str, run: str, *more: object) -> Result:
    return in_process("pretrain", field / corpus, "-o", field / run, "--from", field / model, *OPTIONS[2:], *more)


def weights(model: Path) -> dict[str, torch.Tensor]:
    return load_file(model / "model.safetensors")


def test_going_on_with_new_words_grows_the_model(field: Path) -> None:
    wider = Tokenizer.load(field / "wider")
    assert wider.vocab_size == 408 and wider.vocabulary[400:402] == ["photosynthesis", "chloroplast"]
    tokens = Corpus.open(field / "wider-corpus").train.shards[0].arrays["tokens"]
    assert (tokens >= 402).any()  # the words found in the text stand in the corpus as one piece
    done = go_on(field, "wider-corpus", "model", "grown", "--lr", 1e-9, "--dropout", 0, "--checkpoint-every", 2)
    assert done.exit_code == 0, done.output
    assert "8 words are new" in done.stderr
    run = field / "grown"
    assert RunFolder(run).stored_as(Plan).model.vocab_size == 408
    theirs, info = BertForPreTraining.from_pretrained(run / "model", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert theirs.config.vocab_size == 408 == len(theirs.cls.predictions.bias)
    text = "Photosynthesis and the chloroplast"
    assert AutoTokenizer.from_pretrained(run / "model")(text)["input_ids"] == wider.encode(text).ids
    name = "bert.embeddings.word_embeddings.weight"
    before, after = weights(field / "model")[name], weights(run / "model")[name]
    pieces = Tokenizer.load(field / "model").encode("chloroplast").ids[1:-1]
    # Hardly moved by so low a rate, they show where training began.
    torch.testing.assert_close(after[:400], before, rtol=0, atol=1e-6)
    torch.testing.assert_close(after[401], before[pieces].mean(0), rtol=0, atol=1e-6)


def test_a_grown_run_is_resumed_exactly(field: Path) -> None:
    options = ("wider-corpus", "model", "resumed", "--checkpoint-every", 2, "--seed", 4)
    assert go_on(field, *options).exit_code == 0
    whole = weights(field / "resumed" / "model")
    last = sorted((field / "resumed" / "checkpoints").glob("step-*"))[-1]
    (last / "manifest.json").write_text("damaged")
    done = go_on(field, *options, "--resume")
    assert done.exit_code == 0 and "resumed from step-000004" in done.stderr, done.output
    again = weights(field / "resumed" / "model")
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)


def test_going_on_with_the_own_vocabulary_and_with_another(field: Path) -> None:
    own = go_on(field, "corpus", "model", "own")
    assert own.exit_code == 0 and "are new" not in own.stderr, own.output
    assert json.loads((field / "own" / "model" / "config.json").read_text())["vocab_size"] == 400
    in_process("new", field / "large", "--tokenizer", field / "wider")
    fewer = go_on(field, "corpus", "large", "fewer")
    assert isinstance(fewer.exception, HeedfulError)
    assert "another vocabulary: the corpus was made with 400 pieces, the tokenizer has 408" in str(fewer.exception)
    assert not (field / "fewer").exists()
