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
from heedful.data.corpus.permuted import PermutationRecipe, PermutedBatches, PermutedExamples
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


def test_settings_of_others_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="--masking has no effect on a model of the type xlnet"):
        pretrain(corpus, tmp_path / "run", "--masking", "word", "--budget", "1steps")
