"""`heedful translate train`: from pairs to a model folder, and what is refused before anything is written."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.translation_folder import load_translation
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.models.seq2seq import Seq2Seq
from heedful.runs.translation.material import names_of
from heedful.runs.translation.plan import Plan, bleu_tokenizer_of
from heedful.runs.translation.settings import TranslationSettings
from heedful.training.run_folder import RunFolder

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
TINY = (
    *("--set", "width=32", "--set", "heads=2", "--set", "inner=48", "--set", "encoder_layers=1"),
    *("--set", "decoder_layers=1", "--vocab-size", 300, "--dropout", 0),
)
FAST = (*TINY, "--lr", "5e-3", "--batch-size", 400, "--eval-every", 20, "--average", 3)


def rows(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    sentences = [rng.choices(list(WORDS), k=rng.randint(1, 4)) for _ in range(count)]
    return [f"{' '.join(words)}\t{' '.join(WORDS[word] for word in words)}" for words in sentences]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers in two languages: a table, and the same as two texts."""
    folder = tmp_path_factory.mktemp("translate")
    for name, count, seed in (("train", 200, 0), ("dev", 12, 1)):
        lines = rows(count, seed)
        (folder / f"{name}.tsv").write_text("en\tde\n" + "\n".join(lines) + "\n", encoding="utf-8")
        for side, language in enumerate(("en", "de")):
            text = "\n".join(line.split("\t")[side] for line in lines) + "\n"
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    return folder


Train = Callable[..., Result]


@pytest.fixture
def train(data: Path, tmp_path: Path) -> Train:
    """The command in this process, on the table; the folder is `run`."""

    def called(*arguments: object, table: Path = data / "train.tsv", dev: bool = True, target: str = "de") -> Result:
        given = ["translate", "train", "--train", table, "--source", "en", "--target", target, "-o", tmp_path / "run"]
        given += ["--dev", data / "dev.tsv"] if dev else []
        done = CliRunner().invoke(cli, [str(argument) for argument in (*given, *arguments)])
        if done.exception is not None and not isinstance(done.exception, SystemExit | HeedfulError):
            raise done.exception
        return done

    return called


def refused(done: Result) -> str:
    """What the user reads."""
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


def evaluations(run: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [line["evaluation"] for line in lines if "evaluation" in line]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "heedful", *map(str, arguments)]


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    """A finished run."""
    files = ("--train", data / "train.tsv", "--dev", data / "dev.tsv", "--source", "en", "--target", "de")
    arguments = ("translate", "train", *files, "-o", data / "run", "--budget", "120steps", *FAST)
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    (data / "said.txt").write_text(done.stderr, encoding="utf-8")
    return data / "run"


def test_it_learns_and_leaves_a_whole_run_folder(run: Path) -> None:
    names = {path.name for path in run.iterdir()}
    wanted = {"config.toml", "metrics.jsonl", "timing.json", "report.html", "scores.json", "model", "checkpoints"}
    assert wanted <= names
    scores = evaluations(run)
    assert len(scores) == 6
    assert scores[-1]["loss"] < scores[0]["loss"]
    assert json.loads((run / "scores.json").read_text("utf-8"))["bleu"] > 50
    assert "eins" in (run / "report.html").read_text("utf-8")  # translations to look at


def test_the_signature_is_printed_and_in_the_model_card(run: Path) -> None:
    said, card = (run.parent / "said.txt").read_text("utf-8"), (run / "model" / "README.md").read_text("utf-8")
    assert "tok:13a|smooth:exp" in said
    assert "tok:13a smooth:exp" in card
    assert "the average of the last 3 checkpoints has bleu" in said
    assert "en → de" in card


def test_the_model_of_the_run_loads_and_its_scores_are_its_own(run: Path, data: Path) -> None:
    from heedful.tasks.translate_decoding import decode
    from heedful.tasks.translate_scores import Scorer
    from heedful.text.sides import Symbols

    folder = load_translation(run / "model")
    assert folder.names == ("en", "de")
    sources = (data / "dev.en").read_text("utf-8").splitlines()
    ids = [folder.sides.source.encode(text).ids for text in sources]
    said = decode(folder.model, ids, Symbols.of(folder.sides.target), folder.max_length)
    translations = [folder.sides.target.decode(one) for one in said]
    found = Scorer((data / "dev.de").read_text("utf-8").splitlines()).scores(translations)
    kept = json.loads((run / "scores.json").read_text("utf-8"))
    assert {name: kept[name] for name in found} == pytest.approx(dict(found))


def test_resuming_is_exact(run: Path, data: Path) -> None:
    """A run that is killed and gone on with, here from two texts, ends with the weights of the one that was not."""
    pairs = [("--train", data / f"train.{side}", "--dev", data / f"dev.{side}") for side in ("en", "de")]
    files = [argument for pair in pairs for argument in pair]
    again = data / "again"
    names = ("--source", "en", "--target", "de")
    arguments = ("translate", "train", *files, *names, "-o", again, "--budget", "120steps", *FAST)
    first = subprocess.Popen(command(*arguments), stderr=subprocess.DEVNULL)
    while first.poll() is None and not list((again / "checkpoints").glob("step-*")):
        time.sleep(0.01)
    first.kill()
    first.wait()
    done = subprocess.run(command(*arguments, "--resume"), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    digests = [hashlib.sha256((one / "model" / "model.safetensors").read_bytes()).hexdigest() for one in (run, again)]
    assert digests[0] == digests[1]


def test_an_rnn_with_a_vocabulary_for_each_side(train: Train, tmp_path: Path) -> None:
    size = ("--size", "tiny", "--vocab-size", 290, "--separate", "--forcing", "1:0.8")
    assert train("--model", "attention", *size, "--epochs", 1, "--cell", "lstm").exit_code == 0
    folder = load_translation(tmp_path / "run" / "model")
    assert isinstance(folder.model, Seq2Seq)
    assert folder.model.config.cell == "lstm"
    assert not folder.sides.joint
    plan = RunFolder(tmp_path / "run").stored_as(Plan)
    assert (plan.forcing.first, plan.forcing.last) == (1.0, 0.8)


def test_without_dev_data_the_last_weights_are_kept(train: Train, tmp_path: Path) -> None:
    assert train(*TINY, "--budget", "2steps", dev=False).exit_code == 0
    assert not evaluations(tmp_path / "run")
    assert load_translation(tmp_path / "run" / "model").names == ("en", "de")


def test_a_bert_can_be_the_encoder(train: Train, tiny_folder: Path, tmp_path: Path) -> None:
    shape = ("--set", "width=32", "--set", "heads=2", "--set", "inner=48", "--set", "decoder_layers=1")
    given = ("--encoder", tiny_folder, *shape, "--vocab-size", 290, "--budget", "2steps")
    assert train(*given).exit_code == 0
    folder = load_translation(tmp_path / "run" / "model")
    assert folder.sides.source.encode("the cat").tokens == ["[CLS]", "the", "cat", "[SEP]"]
    assert folder.max_length == 512
    assert folder.model.config.encoder == read_folder(tiny_folder).model_config  # its own dropout
    plain = read_folder(tiny_folder).with_dropout(0.0).model_config
    for first, options in (("before", given), ("after", ("--from", tmp_path / "before", "--budget", "1steps"))):
        (tmp_path / "run").rename(tmp_path / first)
        assert train(*options, "--dropout", 0).exit_code == 0
        config = load_translation(tmp_path / "run" / "model").model.config
        assert config.encoder == plain and config.dropout == 0


def test_the_papers_schedule_has_the_papers_rate(train: Train, tmp_path: Path) -> None:
    assert train(*TINY, "--budget", "2steps", "--schedule", "inverse_sqrt", "--warmup", 2).exit_code == 0
    training = RunFolder(tmp_path / "run").stored_as(Plan).training
    assert training.learning_rate == pytest.approx((32 * 2) ** -0.5)
    assert (training.beta1, training.beta2) == (0.9, 0.98)


def test_given_tokenizers_are_used(train: Train, run: Path, tmp_path: Path) -> None:
    assert train(*TINY, "--tokenizer", run / "model", "--budget", "2steps").exit_code == 0
    vocabularies = [(one / "model" / "tokenizer.json").read_bytes() for one in (run, tmp_path / "run")]
    assert vocabularies[0] == vocabularies[1]


def test_peek_shows_what_the_model_sees_and_trains_nothing(train: Train, tmp_path: Path) -> None:
    printed = train(*TINY, "--peek", 2).output
    assert printed.count("to say") == 2
    assert "[CLS]" in printed
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--size", "gigantic"), "no Transformer size is called 'gigantic'"),
        (("--model", "rnn", "--size", "gigantic"), "size is called 'gigantic'"),
        (("--model", "cnn"), "no model is called 'cnn'"),
        (("--cell", "gru"), "--cell does not go with a transformer"),
        (("--model", "attention", "--decoder", "1"), "--decoder does not go with attention"),
        (("--model", "rnn", "--decoder", "4"), "decoder is '4'"),
        (("--model", "rnn", "--decoder", "1", "--forcing", "0.5"), "--forcing below 1 is for RNNs"),
        (("--forcing", "0.5"), "--forcing below 1 is for RNNs"),
        (("--forcing", "often"), "--forcing often is not understood"),
        (("--forcing", "1:2"), "from 0 to 1"),
        (("--set", "layers=2"), "unknown key 'layers'"),
        (("--set", "width"), "--set width is not understood"),
        (("--set", "width=broad"), "--set width=broad is not understood"),
        (("--set", "pre_norm=perhaps"), "--set pre_norm=perhaps is not understood"),
        (("--bleu-tokenizer", "spm"), "no tokenizer for BLEU"),
        (("--epochs", "nan"), "nan epochs"),
        (("--train", "b", "--train", "c"), "--train is given more than twice"),
        (("--max-length", "2"), "leaves no room"),
        (("--max-length", "600"), "texts of 600 tokens are longer than the model's 512"),
        (("--encoder", "nowhere"), "no such folder"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(
    train: Train, tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    assert said in refused(train(*given, "--budget", "1steps"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--metric=loss", "--patience=2", "--eval-every=5"])
def test_options_that_need_dev_data_are_refused_without(train: Train, tmp_path: Path, option: str) -> None:
    assert "no effect without dev data" in refused(train(option, "--budget", "1steps", dev=False))
    assert not (tmp_path / "run").exists()


def test_bad_data_is_told_with_its_place_and_nothing_is_written(train: Train, tmp_path: Path) -> None:
    for name, content, said in (
        ("column.tsv", b"en\tfr\na\tb\n", "no column 'de' (there are: en, fr)"),
        ("broken.tsv", b"en\tde\na\t\xff\n", "broken.tsv:2"),
        ("empty.tsv", b"", "this file is empty"),
        ("sides.tsv", b"en\tde\na\t\n\tb\n", "no pair has text on both sides"),
        ("long.tsv", b"en\tde\n" + b"x" * 200 + b"\tx\n", "no pair is left: 1 pairs with a side of more than 128"),
    ):
        (tmp_path / name).write_bytes(content)
        assert said in refused(train(*TINY, "--budget", "1steps", table=tmp_path / name))
    assert not (tmp_path / "run").exists()


def test_texts_that_do_not_go_line_by_line_are_refused(train: Train, data: Path, tmp_path: Path) -> None:
    given = ("--train", data / "dev.de")
    assert "200 in" in refused(train(*TINY, *given, "--budget", "1steps", table=data / "train.en"))
    assert not (tmp_path / "run").exists()


def test_pairs_left_out_are_counted(train: Train, data: Path, tmp_path: Path) -> None:
    table = tmp_path / "odd.tsv"
    lines = (data / "train.tsv").read_text("utf-8").splitlines()
    table.write_text("\n".join([*lines, "one\t", f"{'x' * 300}\tzwei", "狗 😀\tHund ‽"]) + "\n", encoding="utf-8")
    shown = train(*TINY, "--budget", "1steps", table=table).stderr
    assert "train: 1 pairs with an empty side, left out (first:" in shown
    assert "train: 1 pairs with a side of more than 128 tokens, left out (first:" in shown
    assert "201 pairs: 1 steps" in shown


def test_a_run_is_not_trained_over(train: Train, tmp_path: Path) -> None:
    given = (*TINY, "--budget", "1steps")
    assert train(*given).exit_code == 0
    assert "there is a run in this folder already" in refused(train(*given))
    assert "other settings: training.seed was 1" in refused(train(*given, "--seed", 2, "--resume"))
    assert train(*given, "--resume").exit_code == 0
    longer = train(*TINY, "--budget", "2steps", "--resume")
    assert "budget was '1steps', is now '2steps'" in longer.stderr and longer.exit_code == 0


def test_two_texts_are_called_as_they_end(data: Path) -> None:
    files = (str(data / "train.en"), str(data / "train.zh"))
    settings = TranslationSettings(train=files, output="run")
    assert names_of(settings) == ("en", "zh") and bleu_tokenizer_of(settings) == "zh"
    assert names_of(TranslationSettings(train=files, output="run", target="reply")) == ("en", "reply")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--budget", "5"), "budget"),
        (("--bleu-tokenizer", "foo"), "'foo'"),
    ],
)
def test_what_is_wrong_with_the_options_is_told_before_the_vocabulary_is_learned(
    train: Train, option: tuple[str, str], said: str
) -> None:
    assert said in refused(train(*option, "--peek", 1))


def test_a_source_that_is_its_own_target_is_refused(train: Train) -> None:
    assert "the same column" in refused(train("--peek", 1, target="en"))


@pytest.mark.parametrize(
    "shape", [TINY, ("--model", "attention", "--size", "tiny", "--vocab-size", 300, "--dropout", 0)]
)
def test_a_trained_translator_learns_other_pairs(
    train: Train, data: Path, tmp_path: Path, shape: tuple[object, ...]
) -> None:
    assert train(*shape, "--budget", "4steps").exit_code == 0
    before = load_translation(tmp_path / "run" / "model")
    more = ("--from", tmp_path / "run", "--train", data / "dev.tsv", "--dev", data / "dev.tsv", "-o", tmp_path / "next")

    def go_on(*options: object) -> Result:
        return CliRunner().invoke(cli, ["translate", "train", *map(str, (*more, *options))])

    done = go_on("--budget", "1steps", "--lr", "1e-9", "--dropout", 0.2)
    assert done.exit_code == 0, done.output
    after = load_translation(tmp_path / "next" / "model")
    assert after.names == ("en", "de")  # the columns, too, are those it was trained with
    assert after.model.config == replace(before.model.config, dropout=0.2)
    assert after.sides.source.vocabulary == before.sides.source.vocabulary
    pairs = zip(before.model.parameters(), after.model.parameters(), strict=True)
    assert all(torch.allclose(old, new, atol=1e-7) for old, new in pairs)  # a step of next to nothing
    assert "--vocab-size does not go with --from" in refused(go_on("--vocab-size", 400))
