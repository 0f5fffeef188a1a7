"""The permutation objective: its loss is that of `transformers`, and runs learn, resume exactly and leave a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file
from transformers import AutoTokenizer, XLNetConfig, XLNetLMHeadModel

import heedful
from heedful.checkpoints.encoder_folder import load_for_pretraining
from heedful.checkpoints.folder import read_folder
from heedful.cli.main import cli
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.permuted import PermutationRecipe, PermutedBatches, PermutedExamples, PermutedLanes
from heedful.data.corpus.phases import Place
from heedful.data.corpus.tokens import TokenSettings
from heedful.errors import HeedfulError
from heedful.models.xlnet import sized
from heedful.tasks.objectives import PERMUTATION
from heedful.text.tokenizer import Tokenizer

LINES = ["the cat sees the dog .", "a dog sees a cat .", "love the cat !", "the dog loves the dog ."]


@pytest.fixture(scope="module")
def corpus(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("permutation")
    rng = np.random.default_rng(0)
    documents = ["\n".join(rng.choice(LINES, 12)) for _ in range(60)]
    (folder / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    reading = ReadingSettings(held_out_share=0.2)
    build_corpus(
        [str(folder / "text.txt")], folder / "corpus", tiny_tokenizer, TokenSettings(layout="sentences"), reading
    )
    return folder / "corpus"


def pretrain(corpus: Path, run: Path, *more: object) -> None:
    options = ("--model", "xlnet", "--size", "nano", "--phases", "32:100%", "--batch-size", 8, "--lr", 0.01)
    arguments = ("pretrain", corpus, "-o", run, *options, *more)
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_the_loss_is_that_of_transformers(corpus: Path, tmp_path: Path) -> None:
    opened = Corpus.open(corpus)
    config = sized("nano", opened.tokenizer.vocab_size)
    torch.manual_seed(0)
    theirs = XLNetLMHeadModel(XLNetConfig(vocab_size=config.vocab_size, d_model=64, n_layer=2, n_head=2, d_inner=256))
    theirs.eval().save_pretrained(tmp_path / "theirs")
    ours = load_for_pretraining(read_folder(tmp_path / "theirs"), seed=0)
    maker = PermutedExamples(opened, PermutationRecipe(max_length=32))
    numbers = [number for number in range(40) if maker.take(np.array([number]))[0].lengths[0] == 32][:6]
    one = PermutedBatches(maker).take(Place(0, 0, 64), np.array(numbers))
    assert one.batch.lengths == (32,) * 6
    order, targets = one.order.view(6, 32), one.targets.view(6, -1) % 32
    hidden = order[:, None, :] >= order.clamp(min=0)[:, :, None]
    mapping = torch.nn.functional.one_hot(targets, 32)
    with torch.no_grad():
        loss = PERMUTATION.losses(ours, one)["permutation"] / len(one.labels)
        expected = theirs(
            one.batch.ids.view(6, 32),
            token_type_ids=one.batch.segments.view(6, 32),
            perm_mask=hidden.float(),
            target_mapping=mapping.float(),
            labels=one.labels.view(6, -1),
        ).loss
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)


def test_a_run_learns_resumes_exactly_and_leaves_a_folder_for_transformers(corpus: Path, tmp_path: Path) -> None:
    pretrain(corpus, tmp_path / "whole", "--budget", "30steps", "--checkpoint-every", 10)
    pretrain(corpus, tmp_path / "cut", "--budget", "30steps", "--checkpoint-every", 10)
    (tmp_path / "cut" / "checkpoints" / "step-000030" / "manifest.json").write_text("damaged")
    pretrain(corpus, tmp_path / "cut", "--budget", "30steps", "--checkpoint-every", 10, "--resume")
    whole, cut = (load_file(tmp_path / run / "model" / "model.safetensors") for run in ("whole", "cut"))
    assert whole.keys() == cut.keys() and all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())
    model = tmp_path / "whole" / "model"
    _, info = XLNetLMHeadModel.from_pretrained(model, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    ids = AutoTokenizer.from_pretrained(model)("the cat")["input_ids"]
    assert ids[-1] == heedful.load(model).tokenizer.cls_id and read_folder(model).model_type == "xlnet"
    opened = Corpus.open(corpus)
    recipe = PermutationRecipe(max_length=32)
    examination = PERMUTATION.examination(opened, recipe, 8, 20, lambda text: None)
    trained = load_for_pretraining(read_folder(model), seed=0)
    with torch.no_grad():
        scores, shown = examination.scores(trained), examination.shown(trained)
    assert scores["permutation_loss"] < scores["unigram_loss"]
    assert len(shown) == 4 and all("[___]" in one["text"] and len(one["guesses"]) == 3 for one in shown)


def test_with_a_memory_text_goes_on_in_lanes(corpus: Path) -> None:
    opened = Corpus.open(corpus)
    lanes = PermutedLanes(opened, PermutationRecipe(max_length=32, memory=10))
    steps = [lanes.take(Place(step, 4 * step, 4), np.arange(4)) for step in range(3)]
    sep, cls = opened.tokenizer.sep_id, opened.tokenizer.cls_id
    read = [one.batch.ids.view(4, 32) for one in steps]
    assert all(ids[:, -2:].tolist() == [[sep, cls]] * 4 for ids in read)
    lane = torch.cat([ids[1, :-2] for ids in read]).tolist()
    reach = len(lanes.stream) // 4
    assert lane == lanes.stream.read(reach, reach + 90).tolist()
    assert [one.fresh.tolist() for one in steps] == [[True] * 4, [False] * 4, [False] * 4]
    alone = lanes.take(Place(1, 4, 4), np.array([2]))  # however a batch is dealt
    assert torch.equal(alone.batch.ids, read[1][2]) and torch.equal(alone.order, steps[1].order.view(4, 32)[2])
    around = lanes.take(Place(reach // 30, 0, 4), np.arange(4))
    assert torch.equal(around.batch.ids, steps[0].batch.ids) and around.fresh.all()
    with pytest.raises(HeedfulError, match="lanes of 30 tokens are more than the text has"):
        lanes.take(Place(0, 0, 4000), np.arange(4))


def test_the_loss_with_a_memory_is_that_of_transformers(corpus: Path, tmp_path: Path) -> None:
    """Three steps, each of which sees the last states of the text before; the first one a memory of zeros."""
    opened, size = Corpus.open(corpus), 12
    torch.manual_seed(0)
    shape = {"vocab_size": opened.tokenizer.vocab_size, "d_model": 24, "n_layer": 2, "n_head": 2, "d_inner": 32}
    theirs = XLNetLMHeadModel(XLNetConfig(**shape, mem_len=None, use_mems_eval=True)).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_for_pretraining(read_folder(tmp_path / "theirs"), seed=0)
    recipe = PermutationRecipe(max_length=20, memory=size)
    batches, objective = PERMUTATION.batches(opened, recipe), PERMUTATION.in_run(ours, 3, recipe)
    mems = [torch.zeros(size, 3, 24)] * 2
    for step in range(3):
        one = batches.take(Place(step, 3 * step, 3), np.arange(3))
        order, targets = one.order.view(3, 20), one.targets.view(3, -1) % 20
        with torch.no_grad():
            loss = objective(ours, one)["permutation"] / len(one.labels)
            objective.carried.keep()
            expected = theirs(
                one.batch.ids.view(3, 20),
                token_type_ids=one.batch.segments.view(3, 20),
                perm_mask=(order[:, None, :] >= order.clamp(min=0)[:, :, None]).float(),
                target_mapping=torch.nn.functional.one_hot(targets, 20).float(),
                labels=one.labels.view(3, -1),
                mems=mems,
            )
        torch.testing.assert_close(loss, expected.loss, rtol=1e-5, atol=1e-5)
        mems = [layer[:-2][-size:] for layer in expected.mems]


def test_a_run_with_a_memory_resumes_exactly(corpus: Path, tmp_path: Path) -> None:
    options = ("--budget", "9steps", "--checkpoint-every", 3, "--memory", 20)
    for run in ("whole", "cut"):
        pretrain(corpus, tmp_path / run, *options)
    (tmp_path / "cut" / "checkpoints" / "step-000009" / "manifest.json").write_text("damaged")
    pretrain(corpus, tmp_path / "cut", *options, "--resume")
    whole, cut = (load_file(tmp_path / run / "model" / "model.safetensors") for run in ("whole", "cut"))
    assert whole.keys() == cut.keys() and all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())
    pretrain(corpus, tmp_path / "without", *options[:4])
    without = load_file(tmp_path / "without" / "model" / "model.safetensors")
    assert not torch.equal(without["transformer.word_embedding.weight"], whole["transformer.word_embedding.weight"])
    with pytest.raises(HeedfulError, match="--memory does not go with mem_len 8"):
        pretrain(corpus, tmp_path / "x", *options, "--set", "mem_len=8")


def test_settings_of_others_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="--masking has no effect on a model of the type xlnet"):
        pretrain(corpus, tmp_path / "run", "--masking", "word", "--budget", "1steps")
