"""Runs from Python: the same weights as from the command line, clear refusals, and nothing of the process changed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.cli.main import main
from heedful.errors import HeedfulError
from heedful.training.events import Ended, Evaluated, Event, Note, Progress

TEXTS = ["the cat loves the dog", "the dog sees the cat", "a cat sees", "the dog loves a cat"]
ROWS = [{"text": f"{text} {letter}", "label": "lo"[n % 2]} for letter in "abcd" for n, text in enumerate(TEXTS)]
PAIRS = [(text, text.upper()) for row in ROWS for text in (row["text"], row["text"][::-1])]
SHAPE = {"width": 16, "heads": 2, "inner": 16, "encoder_layers": 1, "decoder_layers": 1}
SILENT: dict[str, Any] = {"progress": False}


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def command(*arguments: object) -> object:
    """The exit code of the command line in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    documents = "\n\n".join(f"{a} {b}.\n{b} {a}.\n{a} {a}." for a in TEXTS for b in TEXTS)
    (folder / "text.txt").write_text(documents, encoding="utf-8")
    tokenizer = heedful.train_tokenizer(folder / "text.txt", folder / "tokenizer", vocab_size=60, **SILENT)
    assert (folder / "tokenizer" / "tokenizer.json").is_file() and tokenizer.vocab_size <= 60
    built = heedful.build_corpus(
        [folder / "text.txt"], folder / "corpus", tokenizer=folder / "tokenizer", held_out=0.3, **SILENT
    )
    assert built.train.tokens > 0
    return folder / "corpus"


@pytest.fixture
def finetune(tiny_folder: Path, tmp_path: Path) -> Callable[..., heedful.Run]:
    """A small run on rows in memory, in the folder `run` unless another is named."""

    def called(folder: str = "run", **more: Any) -> heedful.Run:
        usual = {"model": tiny_folder, "train": ROWS, "output": tmp_path / folder, "epochs": 2, "batch_size": 4}
        return heedful.finetune("classify", **{**usual, **SILENT, **more})

    return called


def test_a_pretraining_run_is_that_of_the_command_line(corpus: Path, tmp_path: Path) -> None:
    short = {"size": "tiny", "budget": "4steps", "phases": "16:50%,32:50%", "batch_size": 4}
    run = heedful.pretrain(corpus, tmp_path / "python", **short, **SILENT)
    options = ("--size", "tiny", "--budget", "4steps", "--phases", "16:50%,32:50%", "--batch-size", 4)
    assert command("pretrain", corpus, "-o", tmp_path / "shell", *options) == 0
    assert weights(run.folder) == weights(tmp_path / "shell")
    assert run.scores["mlm_loss"] > 0 and run.report.is_file() and run.metrics[-1]["step"] == 4
    assert run.load("cpu").embed(["the cat"]).shape == (1, 128)


def test_a_fine_tuning_run_is_that_of_the_command_line(
    finetune: Callable[..., heedful.Run], tiny_folder: Path, tmp_path: Path
) -> None:
    table = tmp_path / "rows.tsv"
    table.write_text("text\tlabel\n" + "".join(f"{r['text']}\t{r['label']}\n" for r in ROWS), encoding="utf-8")
    files = ("--model", tiny_folder, "--train", table, "--dev", table, "-o", tmp_path / "shell")
    assert command("finetune", "classify", *files, "--epochs", 2, "--batch-size", 4) == 0
    runs = [finetune("rows", dev=ROWS), finetune("tuples", train=[tuple(row.values()) for row in ROWS], dev=str(table))]
    assert {weights(run.folder) for run in runs} == {weights(tmp_path / "shell")}
    report = heedful.evaluate(runs[0], ROWS, rounds=0, **SILENT)
    assert report.scores == runs[0].scores
    assert len(runs[0].load("cpu").predict(["the cat"])) == 1


def test_a_translation_run_is_that_of_the_command_line(tmp_path: Path) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    run = heedful.train_translator(
        train=PAIRS, dev=PAIRS[:4], output=tmp_path / "python", set=SHAPE, vocab_size=280, budget="3steps", **SILENT
    )
    dev = tmp_path / "dev.tsv"
    dev.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS[:4]), encoding="utf-8")
    fields = [part for name, value in SHAPE.items() for part in ("--set", f"{name}={value}")]
    files = ("--train", table, "--dev", dev, "-o", tmp_path / "shell")
    assert command("translate", "train", *files, *fields, "--vocab-size", 280, "--budget", "3steps") == 0
    assert weights(run.folder) == weights(tmp_path / "shell")
    report = heedful.evaluate_translator(run, PAIRS[:4], beam=1, **SILENT)
    assert report.pairs == 4 and report.scores["chrf"] == pytest.approx(run.scores["chrf"])


def test_a_frame_gives_its_rows(finetune: Callable[..., heedful.Run]) -> None:
    class Frame:
        """What pandas' frames have that tells them from other things one can go over."""

        columns = ("text", "label")

        def to_dict(self, orient: str) -> list[dict[str, str]]:
            assert orient == "records"
            return ROWS

    assert weights(finetune("frame", train=Frame()).folder) == weights(finetune("list").folder)


def test_ctrl_c_keeps_the_last_step_and_comes_back_as_itself(finetune: Callable[..., heedful.Run]) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Progress) and event.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune("stopped", on_event=interrupt)
    heard: list[Event] = []
    run = finetune("stopped", resume=True, on_event=heard.append)
    assert "resumed from step-000003" in {event.text for event in heard if isinstance(event, Note)}
    assert weights(run.folder) == weights(finetune("whole").folder)


def test_a_run_in_a_thread_leaves_the_process_as_it_was(finetune: Callable[..., heedful.Run]) -> None:
    def state() -> list[Any]:
        denormals = float(torch.tensor(1e-39) * 1)
        return [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), torch.get_num_threads(), denormals]

    before, runs = state(), []
    thread = threading.Thread(target=lambda: runs.append(finetune("thread", dev=ROWS)))
    thread.start()
    thread.join()
    runs.append(finetune("main", dev=ROWS))
    assert state() == before
    assert weights(runs[0].folder) == weights(runs[1].folder)


def test_events_come_in_order_and_nothing_is_printed(
    finetune: Callable[..., heedful.Run], capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[Event] = []
    finetune(dev=ROWS, on_event=heard.append)
    assert capfd.readouterr() == ("", "")
    kinds = [type(event) for event in heard if not isinstance(event, Note)]
    assert kinds == [*[Progress] * 4, Evaluated, *[Progress] * 4, Evaluated, Ended]
    finetune("shown", progress=True)
    assert "finished after 8 steps" in capfd.readouterr().err


def test_tensorboard_has_what_the_journal_has(finetune: Callable[..., heedful.Run]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = finetune(dev=ROWS, tensorboard=True)
    files = EventAccumulator(str(run.folder / "tensorboard"))
    files.Reload()
    told = {row["step"]: row["evaluation"]["accuracy"] for row in run.metrics if "evaluation" in row}
    assert {one.step: one.value for one in files.Scalars("evaluation/accuracy")} == pytest.approx(told)
    assert [one.step for one in files.Scalars("losses/classify")] == [8]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epoch": 3}, "did you mean 'epochs'?"),
        ({"epochs": "three"}, "epochs is 'three', which is not a number"),
        ({"precision": "float16"}, "'auto', 'float32', 'bfloat16'"),
        ({"seed": -1}, "`seed` is -1"),
        ({"train": 7}, "data of type int is not understood"),
        ({"train": [("a", "b", "c", "d")]}, "a tuple of 4 values"),
        ({"model": None}, "model is None"),
        ({"patience": 2}, "`patience` has no effect without dev data"),
    ],
)
def test_wrong_use_is_told(finetune: Callable[..., heedful.Run], given: dict[str, Any], said: str) -> None:
    with pytest.raises(HeedfulError) as error:
        finetune(**given)
    assert said in str(error.value)


def test_a_missing_field_and_too_many_arguments_are_told(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="`model` is missing"):
        heedful.finetune("classify", train=ROWS, output=tmp_path / "run")
    with pytest.raises(HeedfulError, match="takes 2 arguments without a name"):
        heedful.pretrain("corpus", "run", "mini")  # type: ignore[call-arg]


def test_a_folder_with_a_run_is_refused(finetune: Callable[..., heedful.Run]) -> None:
    run = finetune()
    with pytest.raises(HeedfulError, match="there is a run in this folder already"):
        finetune()
    assert finetune(resume=True).scores == run.scores


def test_public_names_are_listed_and_import_nothing_slow() -> None:
    code = (
        "import sys, heedful; names = dir(heedful); heedful.finetune; "
        "sys.exit(any(slow in sys.modules for slow in ('torch', 'numpy', 'rich', 'click')) or print(*names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    public = {"pretrain", "finetune", "train_translator", "train_tokenizer", "build_corpus", "evaluate", "load"}
    assert {*public, "HeedfulError", "Run"} <= set(done.stdout.split())


def test_help_names_every_field() -> None:
    assert "epochs" in (heedful.finetune.__doc__ or "") and "resume" in (heedful.pretrain.__doc__ or "")
