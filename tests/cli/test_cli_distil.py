"""`heedful distil`: a student that follows its teacher's vectors or answers, here and in sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from torch import nn

import heedful
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.models.bert import sized
from heedful.runs.distilling import answers
from heedful.runs.distilling.run import ANSWERS
from heedful.runs.distilling.student import teacher_share
from heedful.text.tokenizer import Tokenizer

WORDS = ["the", "cat", "dog", "sees", "love", "un", "中国", "苹果", "able", "b", "c", "d"]
SMALL = ("--size", "nano", "--set", "hidden_size=16", "--set", "num_attention_heads=2", "--set", "intermediate_size=32")
RECIPE = ("--batch-size", 16, "--lr", "3e-3", "--max-length", 32)
TEXTS = ["the cat", "dog sees love", "中国 苹果", "unaffordable dogs", "", "a b c " * 100]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def command(*arguments: object) -> str:
    done = invoke(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def scores(run: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of three words each, and labelled ones: is there a cat in it?"""
    folder = tmp_path_factory.mktemp("distil")
    lines = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS[:5] if len({a, b, c}) == 3]
    (folder / "lines.txt").write_text("\n".join(["", lines[0], *lines]) + "\n", encoding="utf-8")
    rows = [f"{line}\t{'cat' if 'cat' in line else 'none'}" for line in lines[::4]]
    (folder / "rows.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    scored = [
        f"{one}\t{two}\t{len(set(one.split()) & set(two.split()))}" for one in lines[:90:9] for two in lines[::40]
    ]
    (folder / "sts.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(scored) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def teacher(tiny_folder: Path, data: Path) -> Path:
    """A model for sentence vectors, 32 wide, its norms as they usually start, lest all vectors look alike."""
    folder = read_folder(tiny_folder)
    encoder = load_encoder(folder)
    for norm in (module for module in encoder.modules() if isinstance(module, nn.LayerNorm)):
        nn.init.ones_(norm.weight)
        nn.init.zeros_(norm.bias)
    save_model(encoder, data / "teacher", folder.tokenizer, sentence=SentenceSettings("mean"))
    return data / "teacher"


@pytest.fixture(scope="module")
def run(data: Path, teacher: Path) -> Path:
    files = ("--train", data / "lines.txt", "-o", data / "run")
    said = command("distil", teacher, *files, *SMALL, *RECIPE, "--epochs", 12)
    assert "from the teacher: embeddings of" in said and "squared length in 16" in said
    return data / "run"


def test_the_student_follows_the_teacher(run: Path, data: Path, teacher: Path) -> None:
    assert scores(run)["teacher_cosine"] > 0.8
    lines = (data / "lines.txt").read_text(encoding="utf-8").split("\n")[2:60]
    ours, theirs = (heedful.load(folder).similarity(lines) for folder in (run, teacher))
    between = np.triu_indices(len(lines), 1)
    assert np.corrcoef(ours[between], theirs[between])[0, 1] > 0.6
    before = heedful.load(run / "start").similarity(lines)
    assert np.corrcoef(before[between], theirs[between])[0, 1] < np.corrcoef(ours[between], theirs[between])[0, 1]


def test_a_run_leaves_what_others_leave(run: Path) -> None:
    for name in ("config.toml", "metrics.jsonl", "timing.json", "report.html", "model/README.md", "start/config.json"):
        assert (run / name).is_file()
    assert np.load(run / ANSWERS).shape[1] == 32
    assert json.loads((run / "timing.json").read_text(encoding="utf-8"))["wall"] > 0
    assert "the vectors of `teacher`" in (run / "model/README.md").read_text(encoding="utf-8")


def test_vectors_are_the_same_in_sentence_transformers(run: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    theirs = sentence_transformers.SentenceTransformer(str(run / "model"), device="cpu", local_files_only=True)
    with pytest.warns(UserWarning, match="longer than 32 tokens"):
        ours = np.asarray(heedful.load(run).embed(TEXTS))
    assert ours.shape == (len(TEXTS), 16)
    np.testing.assert_allclose(ours, theirs.encode(TEXTS), atol=1e-5)


def test_vectors_in_the_teachers_space_have_the_same_cosines(data: Path, teacher: Path, run: Path) -> None:
    files = ("--train", data / "lines.txt", "-o", data / "wide")
    command("distil", teacher, *files, *SMALL, *RECIPE, "--epochs", 12, "--keep-width")
    wide, narrow, teaching = (heedful.load(folder) for folder in (data / "wide", run, teacher))
    ours = np.asarray(wide.embed(TEXTS[:4], normalize=True))
    assert ours.shape == (4, 32)
    np.testing.assert_allclose(ours @ ours.T, narrow.similarity(TEXTS[:4]), atol=1e-5)
    lines = (data / "lines.txt").read_text(encoding="utf-8").split("\n")[2:60]
    vectors = (np.asarray(one.embed(lines, normalize=True)) for one in (wide, teaching))
    assert np.mean(np.sum(np.prod(np.stack(list(vectors)), axis=0), axis=-1)) > 0.8
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    theirs = sentence_transformers.SentenceTransformer(str(data / "wide/model"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(np.asarray(wide.embed(TEXTS[:4])), theirs.encode(TEXTS[:4]), atol=1e-5)


def test_python_gives_the_same_and_dev_decides(data: Path, teacher: Path, tmp_path: Path) -> None:
    options = ("--train", data / "lines.txt", "--dev", data / "sts.tsv", "--budget", "6steps", "--limit", 200)
    command("distil", teacher, *options, *SMALL, *RECIPE, "-o", tmp_path / "shell")
    told = {"size": "nano", "set": {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}}
    recipe = {"batch_size": 16, "learning_rate": 3e-3, "max_length": 32, "budget": "6steps", "limit": 200}
    run = heedful.distil(
        teacher, tmp_path / "python", train=data / "lines.txt", dev=data / "sts.tsv", progress=False, **told, **recipe
    )
    weights = [folder / "model/model.safetensors" for folder in (run.folder, tmp_path / "shell")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert set(run.scores) >= {"spearman", "teacher_cosine"}
    assert len(np.load(run.folder / ANSWERS)) == 20 + 6 * 16  # held out, and what the steps read


def test_a_vocabulary_of_its_own(data: Path, teacher: Path, tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "the", "cats", "中"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own/vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    options = ("--train", data / "lines.txt", "--tokenizer", tmp_path / "own", "--budget", "2steps")
    command("distil", teacher, *options, *SMALL, *RECIPE, "-o", tmp_path / "run")
    model = heedful.load(tmp_path / "run")
    assert model.tokenizer.vocabulary == Tokenizer.load(tmp_path / "own").vocabulary
    assert np.asarray(model.embed(["the cats"])).shape == (1, 16)


def test_a_student_of_its_own(data: Path, teacher: Path, tiny_folder: Path, tmp_path: Path) -> None:
    options = ("--train", data / "lines.txt", "--student", tiny_folder, "--budget", "2steps", *RECIPE)
    said = command("distil", teacher, *options, "-o", tmp_path / "run")
    assert not (tmp_path / "run/start").exists() and "will not be the faster one" in said
    assert np.asarray(heedful.load(tmp_path / "run").embed(["the cat"])).shape == (1, 32)


def test_a_resumed_run_is_bit_for_bit_the_same(
    data: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--train", data / "lines.txt", *SMALL, *RECIPE, "--budget", "8steps", "--checkpoint-every", 4)
    command("distil", teacher, *options, "-o", tmp_path / "whole")
    halves = tmp_path / "halves"
    command("distil", teacher, *options, "-o", halves)
    shutil.rmtree(halves / "model")
    shutil.rmtree(halves / "checkpoints/step-000008")
    # Whoever is asked again would say so: the answers are there.
    monkeypatch.setattr(answers.VectorFile, "append", lambda *given: pytest.fail("the teacher was asked again"))
    command("distil", "--resume", "-o", halves)
    weights = [folder / "model/model.safetensors" for folder in (tmp_path / "whole", halves)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_teacher_that_was_interrupted_goes_on(
    data: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{line} {word}" for line in (data / "lines.txt").read_text(encoding="utf-8").split("\n")[1:-1]
             for word in WORDS[:6]]  # fmt: skip
    (tmp_path / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ("--train", tmp_path / "many.txt", *SMALL, *RECIPE, "--epochs", 0.01)
    command("distil", teacher, *options, "-o", tmp_path / "whole")
    monkeypatch.setattr("heedful.inference.vector_file.COMMIT_EVERY", 0.0)
    appended = answers.VectorFile.append
    calls = []

    def interrupted(self: answers.VectorFile, *given: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        appended(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(answers.VectorFile, "append", interrupted)
    stopped = invoke("distil", teacher, *options, "-o", tmp_path / "run")
    assert stopped.exit_code and not (tmp_path / "run" / ANSWERS).exists()
    assert "from text 2,048 on" in command("distil", "--resume", "-o", tmp_path / "run")
    for name in (str(ANSWERS), "model/model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.fixture(scope="module")
def classifier(data: Path, tiny_folder: Path) -> Path:
    files = ("--train", data / "rows.tsv", "-o", data / "classifier")
    command("finetune", "classify", "--model", tiny_folder, *files, "--lr", "2e-3", "--epochs", 20, "--dropout", 0)
    return data / "classifier"


@pytest.mark.parametrize("labelled", [False, True])
def test_the_answers_of_a_classifier(labelled: bool, data: Path, classifier: Path, tmp_path: Path) -> None:
    options = ("--train", data / "lines.txt", "--dev", data / "rows.tsv", "--epochs", 10)
    more = ("--labelled", data / "rows.tsv") if labelled else ()
    command("distil", classifier, *options, *more, *SMALL, *RECIPE, "-o", tmp_path / "run")
    found = scores(tmp_path / "run")
    assert found["agreement"] > 0.85 and found["accuracy"] > 0.85
    task = json.loads((tmp_path / "run/model/task.json").read_text(encoding="utf-8"))
    assert (task["task"], task["labels"], task["pairs"]) == ("classify", ["cat", "none"], False)
    (answer,) = heedful.load(tmp_path / "run").predict(["cat sees dog"])
    assert answer["label"] == "cat"
    names = json.loads((tmp_path / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert set(names["losses"]) == ({"teacher", "labels"} if labelled else {"teacher"})


def refused(*arguments: object) -> str:
    done = invoke("distil", *arguments)
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


def test_what_cannot_be_learned_is_refused(data: Path, teacher: Path, tiny_folder: Path, tmp_path: Path) -> None:
    lines, out = ("--train", data / "lines.txt"), ("-o", tmp_path / "run")
    assert "no pooling" in refused(tiny_folder, *lines, *out)
    assert "not fine-tuned for a task" in refused(teacher, *lines, "--learn", "answers", *out)
    assert "for a task" in refused(teacher, *lines, "--labelled", data / "rows.tsv", *out)
    assert "do not go with" in refused(teacher, *lines, "--student", tiny_folder, "--set", "hidden_size=8", *out)
    assert "tokenizer" in refused(teacher, *lines, "--tokenizer", tmp_path / "nowhere", *out)
    (tmp_path / "few.txt").write_text("\n\n".join(["the cat", "the dog", "the cat"]), encoding="utf-8")
    assert "2 different texts are too few" in refused(teacher, "--train", tmp_path / "few.txt", *out)
    assert "--train is missing" in refused(teacher, *out)
    assert "cannot write here" in refused(teacher, *lines, "-o", tmp_path / "few.txt" / "run")
    assert "no score 'bleu'" in refused(teacher, *lines, "--dev", data / "sts.tsv", "--metric", "bleu", *out)
    assert "more than the model's 512" in refused(teacher, *lines, "--max-length", 600, *out)


def test_answers_of_another_teacher_are_not_taken(data: Path, teacher: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copytree(run / "teacher", tmp_path / "run/teacher")
    options = ("--train", data / "lines.txt", *SMALL, "--limit", 100)
    assert "other texts" in refused(teacher, *options, "-o", tmp_path / "run")


def test_another_student_in_the_folder_of_a_run_that_never_began(data: Path, teacher: Path, tmp_path: Path) -> None:
    options = ("--train", data / "lines.txt", *SMALL, "--budget", "2steps", "-o", tmp_path / "run")
    refused(teacher, *options, "--max-length", 600)  # the student was made before this was known
    command("distil", teacher, *options, "--set", "num_hidden_layers=1")
    config = json.loads((tmp_path / "run/model/config.json").read_text(encoding="utf-8"))
    assert config["num_hidden_layers"] == 1


def test_a_larger_teacher_has_a_larger_part_of_the_time() -> None:
    mini, base, large = (sized(size, 1000) for size in ("mini", "base", "large"))
    assert teacher_share(mini, mini) == pytest.approx(1 / 14.5)
    assert teacher_share(mini, mini) < teacher_share(base, mini) < teacher_share(large, mini) < 1
