"""ELMo's objective: stretches of words as written, losses of both directions, and a run that resumes exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.cli.main import cli
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Place
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.corpus.word_windows import BilmRecipe, WordWindows, softmax_vocabulary
from heedful.errors import HeedfulError
from heedful.models.elmo import ElmoForPretraining, initialise, sized
from heedful.tasks.objectives import BILM
from heedful.text.elmo_pipeline import BEGIN, END, FIRST_BYTES, OTHER_BYTES, character_tokenizer
from heedful.text.tokenizer import Tokenizer

LINES = ["The cat sees the dog.", "A dog loves zebras!", "我爱北京。", "The dog sleeps.", "Łódź is far."]


def built(folder: Path, tokenizer: Tokenizer, words: bool) -> Corpus:
    rng = np.random.default_rng(0)
    documents = ["\n".join(rng.choice(LINES, 8)) for _ in range(40)]
    (folder / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    settings, reading = TokenSettings(layout="sentences", words=words), ReadingSettings(held_out_share=0.3)
    return build_corpus([str(folder / "text.txt")], folder / "corpus", tokenizer, settings, reading)


@pytest.fixture(scope="module")
def corpus(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return built(tmp_path_factory.mktemp("bilm"), tiny_tokenizer, words=True)


def text_of(ids: list[int]) -> str:
    """Words with a space before each, the ends of sentences as | and /."""
    written = b""
    for number in ids:
        if number in (BEGIN, END):
            written += b" |" if number == BEGIN else b" /"
        else:
            written += b" " if number < OTHER_BYTES else b""
            written += bytes([(number - FIRST_BYTES) % 256])
    return written.decode()


def test_stretches_are_the_text_as_it_is_written(corpus: Corpus) -> None:
    words = softmax_vocabulary(corpus, 12)
    assert words[:3] == ["<UNK>", "<S>", "</S>"] and len(words) == 12
    windows = WordWindows(corpus, words, 10, seed=1)
    pieces = [
        " | The cat sees the dog . /",
        " | A dog loves zebras ! /",
        " | 我 爱 北 京 。 /",
        " | The dog sleeps . /",
    ]
    whole = "".join([*pieces, " | Łódź is far . /"])
    one = windows.take(Place(0, 0, 8), np.arange(8))
    assert one.labels.shape == (8, 10) and one.tokens == 80 and one.counts == {"forward": 72, "backward": 72}
    for row, ids in enumerate(torch.split(one.batch.ids, list(one.batch.lengths))):
        text = text_of(ids.tolist())
        inner = text[text.find(" |") : text.rfind(" /") + 2]
        assert all(f"{part} /" in whole for part in inner.split(" /") if part)
        spelled = [words.index(w) if w in words else 0 for w in text.replace("|", "<S>").replace("/", "</S>").split()]
        assert spelled == one.labels[row].tolist()
    alone = windows.numbered(np.array([5]))
    assert torch.equal(alone.labels[0], one.labels[5])
    assert not torch.equal(windows.numbered(np.arange(8) + len(windows)).labels, one.labels)


def test_each_direction_predicts_its_neighbour_and_never_sees_it(corpus: Corpus) -> None:
    config = sized("nano", 12).with_dropout(0.0)
    model = ElmoForPretraining(config)
    initialise(model, config, seed=0)
    windows = WordWindows(corpus, softmax_vocabulary(corpus, 12), 10)
    one = windows.numbered(np.arange(2))
    losses = BILM.losses(model, one)
    states = model.encoder(one.batch).last
    begins = [i for i, number in enumerate(one.batch.ids.tolist()) if number < OTHER_BYTES]
    words = states[begins].view(2, 10, 2, -1)
    expected = {"forward": 0.0, "backward": 0.0}
    for row in range(2):
        for place in range(9):
            for name, here, there, half in (("forward", place, place + 1, 0), ("backward", place + 1, place, 1)):
                logits = model.softmax(words[row, here, half])
                expected[name] -= float(logits.log_softmax(-1)[one.labels[row, there]].detach())
    for name, loss in losses.items():
        assert float(loss.detach()) == pytest.approx(expected[name], rel=1e-4)


def test_a_run_learns_resumes_exactly_and_leaves_a_folder(corpus: Corpus, tmp_path: Path) -> None:
    def pretrain(run: str, *more: object) -> None:
        options = ("--model", "elmo", "--size", "nano", "--phases", "12:100%", "--batch-size", 4, "--lr", 0.01)
        command = ("pretrain", corpus.folder, "-o", tmp_path / run, *options, "--budget", "16steps", *more)
        done = CliRunner().invoke(cli, list(map(str, command)), catch_exceptions=False)
        assert done.exit_code == 0, done.output

    pretrain("whole", "--checkpoint-every", 8)
    pretrain("cut", "--checkpoint-every", 8)
    (tmp_path / "cut" / "checkpoints" / "step-000016" / "manifest.json").write_text("damaged")
    pretrain("cut", "--checkpoint-every", 8, "--resume")
    whole, cut = (load_file(tmp_path / run / "model" / "model.safetensors") for run in ("whole", "cut"))
    assert whole.keys() == cut.keys() and all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())
    folder = tmp_path / "whole" / "model"
    assert (folder / "words.txt").read_text(encoding="utf-8").splitlines() == softmax_vocabulary(corpus, 20_000)
    vectors = heedful.load(folder).embed(["The cat", "never-seen-word"], unit="word")
    assert [len(some) for some in vectors] == [2, 1]
    examination = BILM.examination(corpus, BilmRecipe(max_length=12), 4, 8, lambda text: None)
    model = ElmoForPretraining(heedful.load(folder).encoder.config)
    state = load_file(folder / "model.safetensors")
    model.load_state_dict(state)
    with torch.no_grad():
        scores, shown = examination.scores(model.eval()), examination.shown(model)
    assert scores["bilm_loss"] < scores["unigram_loss"] and scores["unknown_words"] == 0
    assert len(shown) == min(4, len(examination.windows)) and "[___]" in shown[0]["text"]


def test_a_run_goes_on_from_a_folder_with_the_rows_of_the_words_it_knows(corpus: Corpus, tmp_path: Path) -> None:
    words = ["<UNK>", "<S>", "</S>", "cat", "zyzzyva", "The"]
    config = sized("nano", len(words))
    start = ElmoForPretraining(config)
    initialise(start, config, seed=7)
    save_model(start, tmp_path / "start", character_tokenizer())
    (tmp_path / "start" / "words.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    recipe, told = BilmRecipe(max_length=12), list[str]()
    folder = read_folder(tmp_path / "start")
    planned = BILM.config_from(folder, corpus, recipe)
    model = BILM.model_from(folder, planned, corpus, recipe, 0, told.append)
    vocabulary = softmax_vocabulary(corpus, 20_000)
    assert model.softmax.weight.shape == (len(vocabulary), config.projection)
    for word in vocabulary:
        if word in words:
            assert torch.equal(model.softmax.weight[vocabulary.index(word)], start.softmax.weight[words.index(word)])
    assert told == [f"5 of the {len(vocabulary)} words to be predicted are the folder's, and the others start afresh"]
    assert all(torch.equal(x, start.encoder.state_dict()[name]) for name, x in model.encoder.state_dict().items())
    options = ("--phases", "12:100%", "--batch-size", 4, "--budget", "2steps")
    command = ("pretrain", corpus.folder, "-o", tmp_path / "run", "--from", tmp_path / "start", *options)
    done = CliRunner().invoke(cli, list(map(str, command)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run" / "model" / "words.txt").read_text(encoding="utf-8").splitlines() == vocabulary
    (tmp_path / "start" / "words.txt").unlink()  # as published: its softmax is not known
    assert BILM.model_from(folder, planned, corpus, recipe, 0, told.append).softmax.weight.shape[0] == len(vocabulary)
    assert told[-1].startswith("0 of the ")


def test_a_corpus_without_words_is_refused(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match=r"does not hold the words as they are written(.|\n)*`words`"):
        BILM.check(built(tmp_path, tiny_tokenizer, words=False))
