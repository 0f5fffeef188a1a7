"""word2vec from the command line: trained, gone on with, asked, judged, and under every other verb."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.torch import load_file

import heedful
from heedful.cli.main import cli
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.whole_words import WholeWords
from heedful.errors import HeedfulError
from heedful.runs.pretraining.plan import Plan
from heedful.training.run_folder import RunFolder

RUN = ("--model", "word2vec", "--set", "vector_size=24", "--budget", "3epochs", "--checkpoint-every", 10)
RUN += ("--precision", "bfloat16")  # what `auto` means on some processors: it computes in float32 all the same


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def done(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, HeedfulError), result.output
    return str(result.exception)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("word2vec")
    done("toy", folder / "world", "--size", "small")
    texts = [folder / "world" / f"documents.{language}.txt" for language in ("en", "zh")]
    done("tokenizer", "train", *texts, "-o", folder / "tokenizer", "--vocab-size", 500)
    for name, more in (("corpus", ("--words",)), ("plain", ())):
        done("corpus", "build", *texts, "-o", folder / name, "--tokenizer", folder / "tokenizer", *more)
    done("pretrain", folder / "corpus", "-o", folder / "run", *RUN)
    return folder


def weights(path: Path) -> dict[str, Any]:
    return load_file(path / "model.safetensors")


def test_a_run_leaves_a_folder_a_report_and_a_plan(world: Path) -> None:
    config = json.loads((world / "run" / "model" / "config.json").read_text())
    assert config["model_type"] == "word2vec" and config["vector_size"] == 24
    plan, words = RunFolder(world / "run").stored_as(Plan), WholeWords(Corpus.open(world / "corpus"))
    assert plan is not None and plan.training.precision == "float32"
    assert plan.training.learning_rate == 0.025 and plan.recipe.unit == "word"  # type: ignore[attr-defined]
    assert sum(plan.steps) * plan.batch_sizes[0] * 1000 == pytest.approx(3 * words.total, rel=0.1)
    lines = [json.loads(line) for line in (world / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["losses"]["word2vec"] for line in lines if "losses" in line]
    assert losses[-1] < losses[0] < 4.2  # six times log 2 is where nothing is known
    assert lines[-1]["evaluation"]["word2vec_loss"] < 4.1
    assert all(re.fullmatch(r"(\S+ -?\d\.\d\d(, )?){3}", one["nearest, by cosine"]) for one in lines[-1]["examples"])
    vocabulary = heedful.load(world / "run").tokenizer.vocabulary
    assert vocabulary[1:] == list(words.counted(5, lowercase=True)) and any(len(w) > 1 and w > "一" for w in vocabulary)
    assert (world / "run" / "report.html").exists()


def test_resuming_is_exact(world: Path) -> None:
    whole = weights(world / "run" / "model")
    done("pretrain", world / "corpus", "-o", world / "again", *RUN)
    last = sorted((world / "again" / "checkpoints").glob("step-*"))[-1]
    (last / "manifest.json").write_text("damaged")
    told = done("pretrain", world / "corpus", "-o", world / "again", *RUN, "--resume")
    assert "resumed from" in told.stderr
    again = weights(world / "again" / "model")
    assert all(np.array_equal(whole[name], again[name]) for name in whole)


@pytest.mark.parametrize("more", [("--architecture", "cbow"), ("--workers", 2), ("--unit", "piece"), ("--cased",)])
def test_other_ways_to_train(world: Path, tmp_path: Path, more: tuple[object, ...]) -> None:
    done("pretrain", world / ("plain" if "piece" in more else "corpus"), "-o", tmp_path / "run", *RUN, *more)
    model = heedful.load(tmp_path / "run")
    assert np.isfinite(model.embed(["the red cat", "红色"])).all()
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["evaluation"]["word2vec_loss"] < 4.15


def test_nearest_words_and_analogies(world: Path) -> None:
    words = heedful.load(world / "run").tokenizer.vocabulary
    word, other, third = words[40], words[60], words[80]
    (found,) = json.loads(done("nearest", world / "run", word, "--top", 5, "--json").stdout)
    assert found["to"] == word and len(found["nearest"]) == 5 and word not in dict(found["nearest"])
    matrix = weights(world / "run" / "model")["encoder.embeddings.weight"].numpy()
    unit = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    cosines = unit @ (unit[40] - unit[60] + unit[80])
    cosines[[0, 40, 60, 80]] = -9
    (found,) = json.loads(done("nearest", world / "run", word, "-", other, "+", third, "--json").stdout)
    assert [one for one, _ in found["nearest"]] == [words[i] for i in np.argsort(-cosines)[:10]]
    at_words = done("nearest", world / "run", word, f"-{other}", f"+{third}", "--json")
    assert json.loads(at_words.stdout) == [found]
    assert len(json.loads(done("nearest", world / "run", word, other, "--json").stdout)) == 2
    assert (
        "warning: the model does not know Zyzzyva, qux" in done("similarity", world / "run", word, "Zyzzyva qux").stderr
    )
    assert "has no vector" in refused("nearest", world / "run", "zyzzyva")
    assert "a word is missing" in refused("nearest", world / "run", word, "-")


def test_it_cannot_be_sliced(world: Path, tmp_path: Path) -> None:
    said = refused("pretrain", world / "corpus", "-o", tmp_path / "run", "--model", "word2vec", "--shard")
    assert "--shard has no effect on a model of the type word2vec" in said.replace("`shard`", "--shard")


def test_the_static_matrix_of_a_bert_has_nearest_words_too(tiny_folder: Path) -> None:
    with_h = done("nearest", tiny_folder, "cat", "-the", "--top", 3).output  # which is no -h
    assert with_h.startswith("cat - the\n") and len(with_h.splitlines()) == 4
    shown = done("nearest", tiny_folder, "cat", "unaffordable", "--top", 3).output
    assert shown.startswith("cat\n") and "[UNK]" not in shown and len(shown.splitlines()) == 8


def test_pairs_that_people_have_judged(world: Path, tmp_path: Path) -> None:
    from scipy.stats import spearmanr

    model = heedful.load(world / "run")
    words = model.tokenizer.vocabulary[20:40]
    pairs = list(zip(words[::2], words[1::2], range(10), strict=True))
    lines = [f"{a}\t{b}\t{score}" for a, b, score in pairs]
    (tmp_path / "pairs.tsv").write_text("\n".join(["word1\tword2\tscore", *lines, "zyzzyva\tthe\t3"]), encoding="utf-8")
    found = json.loads(done("similarity", world / "run", "--pairs", tmp_path / "pairs.tsv", "--json").stdout)
    unit = model.embed(words, normalize=True)
    expected = spearmanr((unit[::2] * unit[1::2]).sum(1), range(10))[0]
    assert found["spearman"] == pytest.approx(expected, abs=1e-6)
    assert (found["pairs"], found["left_out"], found["without"]) == (10, 1, ["zyzzyva"])
    (tmp_path / "bad.tsv").write_text("a\tb\t1\na\tb\tmuch\n")
    assert "bad.tsv:2" in refused("similarity", world / "run", "--pairs", tmp_path / "bad.tsv")


def test_vectors_leave_and_come_back(world: Path, tmp_path: Path) -> None:
    done("vectors", world / "run", "-o", tmp_path / "v.bin")
    done("vectors", tmp_path / "v.bin", "-o", tmp_path / "folder")
    model, again = heedful.load(world / "run"), heedful.load(tmp_path / "folder")
    assert again.tokenizer.vocabulary == model.tokenizer.vocabulary
    texts = ["The red cat sleeps.", "中国", ""]
    np.testing.assert_allclose(again.embed(texts), model.embed(texts))
    word = model.tokenizer.vocabulary[30]
    for source in ("v.bin", "folder"):
        shown = done("nearest", tmp_path / source, word).stdout
        assert shown == done("nearest", world / "run", word).stdout
    assert "--overwrite" in refused("vectors", world / "run", "-o", tmp_path / "v.bin")


def test_it_goes_under_a_classifier_and_a_tagger(world: Path, tmp_path: Path) -> None:
    rows = [f"{label}\t{'the cat' if label == 'a' else 'a red house'} {i}" for i in range(12) for label in "ab"]
    (tmp_path / "t.tsv").write_text("label\ttext\n" + "\n".join(rows))
    for more in ((), ("--features", "0")):
        out = tmp_path / f"run{len(more)}"
        done("finetune", "classify", "--model", world / "run" / "model", "--train", tmp_path / "t.tsv", "-o", out,
             "--epochs", 2, *more)  # fmt: skip
        assert heedful.load(out).predict(["the cat"])[0]["label"] in ("a", "b")


def test_what_cannot_be_trained_is_told_before(world: Path, tmp_path: Path) -> None:
    refuse = ("pretrain", world / "plain", "-o", tmp_path / "x", *RUN)
    assert "with its `words`" in refused(*refuse)
    assert "no word occurs 99999999 times" in refused(
        "pretrain", world / "corpus", *refuse[2:], "--min-count", 99999999
    )
    assert "--masking has no effect" in refused("pretrain", world / "corpus", *refuse[2:], "--masking", "word")
    assert "--window has no effect" in refused("pretrain", world / "corpus", "-o", tmp_path / "x", "--window", 3)
    assert not (tmp_path / "x").exists()
