"""`heedful pretrain` from an informed start: stopped in the middle of it, gone on with, and with too little text."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file

from heedful.cli.main import cli
from heedful.models.informed_start import log_frequencies
from heedful.runs.pretraining import run as pretraining
from heedful.runs.pretraining import skip_gram_start
from heedful.runs.pretraining.plan import Plan
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.pretraining.skip_gram_start import READ_A_SECOND, Counted, StartPlan, most_read
from heedful.runs.run import Stage
from heedful.training.run_folder import RunFolder

RUN = ("--size", "tiny", "--phases", "32:100%", "--batch-size", 8, "--budget", "2steps", "--lr", 1e-9)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def done(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("informed")
    done("toy", folder / "world", "--size", "small")
    text = folder / "world" / "documents.en.txt"
    (folder / "few.txt").write_text(text.read_text(encoding="utf-8")[:20_000], encoding="utf-8")
    done("tokenizer", "train", text, "-o", folder / "tokenizer", "--vocab-size", 400)
    for name, file in (("corpus", text), ("few", folder / "few.txt")):
        done("corpus", "build", file, "-o", folder / name, "--tokenizer", folder / "tokenizer")
    done("pretrain", folder / "corpus", "-o", folder / "run", *RUN)
    return folder


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def test_a_run_starts_informed_and_says_so(world: Path) -> None:
    plan = RunFolder(world / "run").stored_as(Plan)
    assert plan is not None and plan.init == "informed"
    assert plan.model.initializer_range == 0.0566  # 0.04 at the width of a mini, and this one has half of it
    found = weights(world / "run")
    vectors = load_file(world / "run" / "start" / "model" / "model.safetensors")["encoder.embeddings.weight"]
    seen = vectors.abs().sum(1) > 0
    rows = found["bert.embeddings.word_embeddings.weight"]
    cosines = torch.cosine_similarity(rows[seen], vectors[seen] - vectors[seen].mean(0))
    assert float(cosines.min()) > 0.999 and 0.5 < float(seen.float().mean()) < 1
    bias = found["cls.predictions.bias"]
    assert float(bias[~seen].max()) == pytest.approx(float(log_frequencies(torch.zeros(1)) + bias.min()), abs=1e-4)
    timing = json.loads((world / "run" / "timing.json").read_text())
    assert timing["parts"]["start"] > 0
    assert sum(timing["parts"].values()) == pytest.approx(timing["wall"], rel=0.05)


def test_it_is_the_same_each_time_and_random_is_another(world: Path) -> None:
    done("pretrain", world / "corpus", "-o", world / "same", *RUN)
    first, second = weights(world / "run"), weights(world / "same")
    assert all(torch.equal(first[name], second[name]) for name in first)
    done("pretrain", world / "corpus", "-o", world / "random", *RUN, "--start", "random")
    assert not (world / "random" / "start").exists()
    assert float(weights(world / "random")["cls.predictions.bias"].abs().max()) < 1e-6


def test_stopped_in_the_middle_of_the_vectors_it_goes_on_bit_for_bit(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves, update = [], skip_gram_start.WORD2VEC.in_run

    def stopping(model: torch.nn.Module, lanes: int, recipe: Any) -> object:
        objective = update(model, lanes, recipe)
        plain = objective.update

        def counted(*arguments: object) -> object:
            moves.append(1)
            if len(moves) == 5:
                signal.raise_signal(signal.SIGINT)
            return plain(*arguments)

        objective.update = counted  # type: ignore[method-assign, assignment]
        return objective

    monkeypatch.setattr(skip_gram_start.WORD2VEC, "in_run", stopping)
    stopped = run("pretrain", world / "corpus", "-o", world / "stopped", *RUN)
    assert stopped.exit_code == 130 and not (world / "stopped" / "model").exists()
    assert len(moves) == 5
    done("pretrain", "--resume", "-o", world / "stopped")
    first, second = weights(world / "run"), weights(world / "stopped")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_two_processes_start_as_one_does(world: Path) -> None:
    told = ["pretrain", world / "corpus", *RUN[:6], "--budget", "4steps", "--lr", 1e-3, "--precision", "float32", "-o"]
    done(*told, world / "one")
    ranks = [sys.executable, *["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "heedful"]]
    two = subprocess.run([*ranks, *map(str, told), str(world / "two")], capture_output=True, text=True)
    assert two.returncode == 0, two.stderr
    vectors = [(world / name / "start" / "model" / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert vectors[0] == vectors[1]
    first, second = weights(world / "one"), weights(world / "two")
    for name, one in first.items():
        torch.testing.assert_close(second[name], one, atol=1e-4, rtol=0)


def test_too_little_text_leaves_the_embeddings_at_random_and_says_so(world: Path, tmp_path: Path) -> None:
    told = done("pretrain", world / "few", "-o", tmp_path / "run", *RUN)
    assert "too small for word vectors" in told.stderr and not (tmp_path / "run" / "start").exists()
    assert float(weights(tmp_path / "run")["cls.predictions.bias"].abs().max()) > 1


def test_pieces_that_the_text_hardly_has_are_told(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skip_gram_start, "MANY_RARE", 0.0)
    told = done("pretrain", world / "corpus", "-o", tmp_path / "run", *RUN)
    vectors = load_file(tmp_path / "run" / "start" / "model" / "model.safetensors")["encoder.embeddings.weight"]
    rare = int((vectors.abs().sum(1) == 0).sum())
    assert rare and f"{rare} of {len(vectors)} pieces occur less than 5 times" in " ".join(told.stderr.split())


def test_a_text_without_a_single_frequent_piece_is_no_less_a_text(world: Path, tmp_path: Path) -> None:
    text = "The cat sat.\nA dog ran home.\n\nA bird sang.\nIt was late.\n"
    (tmp_path / "four.txt").write_text(text, encoding="utf-8")
    done("corpus", "build", tmp_path / "four.txt", "-o", tmp_path / "corpus", "--tokenizer", world / "tokenizer")
    told = done("pretrain", tmp_path / "corpus", "-o", tmp_path / "run", *RUN)
    assert "too small for word vectors" in told.stderr
    bias = weights(tmp_path / "run")["cls.predictions.bias"]
    assert float(bias.max() - bias.min()) > 0.5  # what occurs is likelier than what does not


def test_of_a_large_text_a_part_is_read_and_no_longer_than_a_budget_bears(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert most_read(0) == most_read(1e9) == skip_gram_start.MOST_READ and most_read(60) == 60 * READ_A_SECOND
    monkeypatch.setattr(skip_gram_start, "MOST_READ", 3000)
    done("pretrain", world / "corpus", "-o", tmp_path / "run", *RUN)
    plan = RunFolder(tmp_path / "run" / "start").stored_as(StartPlan)
    whole = RunFolder(world / "run" / "start").stored_as(StartPlan)
    assert plan is not None and whole is not None and plan.training.steps == 2 < whole.training.steps


@pytest.mark.parametrize(("seconds", "steps"), [(0.0, 19), (40.0, 11), (1000.0, 1)])
def test_what_the_vectors_take_is_taken_from_a_budget_of_time(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, steps: int
) -> None:
    monkeypatch.setattr(pretraining, "seconds_per_step", lambda *_: 5.0)
    monkeypatch.setattr(pretraining, "counted", lambda *_: Counted(torch.ones(400), None, seconds))
    told: dict[str, Any] = {"size": "tiny", "phases": "32:100%", "batch_size": 8, "budget": "100s"}
    settings = PretrainingSettings(world / "corpus", tmp_path / "run", **told)
    ready = pretraining.prepare(settings, Stage(RunFolder(tmp_path / "run")))
    assert ready.plan.steps == (steps,) and ready.spent == seconds


def test_a_place_that_cannot_be_written_to_is_refused(world: Path) -> None:
    refused = run("pretrain", world / "corpus", "-o", world / "few.txt" / "run", *RUN)
    assert "cannot write here" in str(refused.exception)


def test_a_start_that_there_cannot_be_is_refused(world: Path, tmp_path: Path) -> None:
    for other in (("--model", "roberta"), ("--from", world / "run" / "model")):
        refused = run("pretrain", world / "corpus", "-o", tmp_path / "run", *RUN, "--start", "informed", *other)
        assert "has no effect" in str(refused.exception)


@pytest.mark.parametrize("family", ["gpt", "xlnet"])
def test_other_families_start_informed_too(world: Path, tmp_path: Path, family: str) -> None:
    done("pretrain", world / "corpus", "-o", tmp_path / "run", "--model", family, *RUN)
    vectors = load_file(tmp_path / "run" / "start" / "model" / "model.safetensors")["encoder.embeddings.weight"]
    names = {"gpt": "transformer.wte.weight", "xlnet": "transformer.word_embedding.weight"}
    rows, seen = weights(tmp_path / "run")[names[family]][: len(vectors)], vectors.abs().sum(1) > 0
    assert float(torch.cosine_similarity(rows[seen], vectors[seen] - vectors[seen].mean(0)).min()) > 0.999
