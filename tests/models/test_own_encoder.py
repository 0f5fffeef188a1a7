"""An encoder of a user's own: recurrent, with a state that goes on from batch to batch, without segments, positions,
attention or special tokens, and summed up by its last row. All that the package offers takes it as it takes BERT.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import processors
from torch import Tensor, nn

import heedful
from heedful.checkpoints import families
from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.families import register_family
from heedful.checkpoints.family import Family
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task, start_for_task
from heedful.checkpoints.translation_folder import load_translation, save_translation
from heedful.config import from_mapping, to_mapping
from heedful.data.batching import flat_batch
from heedful.data.labelled.dataset import Answer as Stretch
from heedful.data.labelled.dataset import Choice, Question, TaggedWords, TextRow
from heedful.errors import HeedfulError
from heedful.inference.predictor import Predictor
from heedful.inference.static_vectors import write_static_vectors
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.heads import freeze, layer_depth
from heedful.models.transformer import Transformer, TransformerConfig, with_encoder
from heedful.nn.pooling import last_rows
from heedful.nn.recurrent import over_runs
from heedful.schema import Batch, Encoded
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.finetuning import TaskObjective, predict
from heedful.tasks.items import ItemSource
from heedful.tasks.objectives import objective_of
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task
from heedful.text.frame import SummaryRow
from heedful.text.sides import Sides
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class GruConfig(EncoderConfig):
    vocab_size: int = 0
    width: int = 16
    layers: int = 2
    dropout: float = 0.1
    model_type: str = "toy-gru"
    max_length: ClassVar[None] = None
    summary: ClassVar[SummaryRow] = "last"

    def with_dropout(self, dropout: float) -> GruConfig:
        return replace(self, dropout=dropout)

    def build(self) -> Gru:
        return Gru(self)


class Gru(Encoder):
    has_attention = False

    def __init__(self, config: GruConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.width)
        self.layers = nn.ModuleList(nn.GRU(config.width, config.width) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        wanted, _ = self.asked_layers(hidden, attention)
        states = [self.embeddings(batch.ids)]
        for number, layer in enumerate(self.layers):
            before = None if memory is None else [memory[number][None]]
            states.append(over_runs(layer, self.dropout(states[-1]), batch.lengths, before))
        after = tuple(state[last_rows(batch.lengths)] for state in states[1:])
        return Encoded({number: states[number] for number in wanted}, {}, after)

    @property
    def token_matrix(self) -> Tensor:
        return self.embeddings.weight


def initialise(model: nn.Module, config: GruConfig, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.3, generator=rng)


FAMILY = Family(ConfigFormat(GruConfig, "GRU"), initialise)
TEXTS = [
    f"{first} {middle} {last}" for first in ("cat", "dog") for middle in "abcde" for last in ("the", "sees", "love")
]
ROWS = [TextRow(text, label=text[:3]) for text in TEXTS]


@pytest.fixture
def folder(tiny_tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The registered family, and a folder of it with random weights and a tokenizer that puts nothing around texts."""
    monkeypatch.setattr(families, "_known", dict(families._known))
    register_family(FAMILY)
    library = tokenizers.Tokenizer.from_str(tiny_tokenizer.library.to_str())
    library.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1")
    tokenizer = Tokenizer(library)
    config = GruConfig(tokenizer.vocab_size)
    encoder = config.build()
    initialise(encoder, config, seed=3)
    save_model(encoder, tmp_path / "toy", tokenizer)
    yield tmp_path / "toy"


def finetuned(path: Path, task: Task[Any], rows: list[Any], steps: int = 40) -> tuple[nn.Module, list[float]]:
    """The model of a task after some steps, and the losses on the way."""
    read = read_folder(path)
    model = load_for_task(read.with_dropout(0.0), task.model, seed=1).train()
    source = ItemSource(task.encode(rows, read.require_tokenizer()), task.name, batch_size=15, seed=0)
    optimiser, objective, losses = torch.optim.Adam(model.parameters(), lr=0.02), TaskObjective(task), []
    for step in range(steps):
        (micro_batch,) = source.step(step)
        loss = objective(model, micro_batch)[task.name] / micro_batch.weight
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return model.eval(), losses


def test_it_is_saved_and_loaded(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "toy-gru" and "architectures" not in config
    read = read_folder(folder)
    assert read.model_config == GruConfig(read.require_tokenizer().vocab_size) and read.max_length == 512
    assert not read.notes
    expected = GruConfig(read.model_config.vocab_size).build()
    initialise(expected, expected.config, seed=3)
    for name, tensor in load_encoder(read).state_dict().items():
        assert torch.equal(tensor, expected.state_dict()[name]), name


def test_its_last_row_sums_a_text_up(folder: Path) -> None:
    read = read_folder(folder)
    tokenizer = read.require_tokenizer()
    (item,) = Classify(labels=("cat", "dog")).encode([TextRow("the cat sees")], tokenizer)
    (window,) = item.windows
    assert window.ids == tokenizer.pieces(["the cat sees"])[0].ids and window.rows == [2]
    (answer,) = Answer().encode([Question("", "the cat", "a dog sees")], tokenizer)
    assert answer.windows[0].rows == [4, 2, 3, 4]
    assert load_encoder(read).summary_rows((3, 2)).tolist() == [2, 4]


def test_it_learns_a_task_and_says_the_same_after_saving(folder: Path, tmp_path: Path) -> None:
    task = Classify.fit(ROWS)
    model, losses = finetuned(folder, task, ROWS)
    assert losses[-1] < 0.1 < losses[0]  # the first word decides, and the last row still knows it
    tokenizer = read_folder(folder).require_tokenizer()
    settings = {"task": task.name, **to_mapping(task)}
    save_for_task(model, tmp_path / "m", tokenizer, task=settings, architecture=task.architecture, labels=task.labels)
    predictions = Predictor(read_folder(tmp_path / "m")).predict(TEXTS)
    assert [one["label"] for one in predictions] == [row.label for row in ROWS]
    expected = predict(task, model, ROWS, tokenizer)
    assert [one["probability"] for one in predictions] == pytest.approx([one["probability"] for one in expected])
    assert heedful.load(tmp_path / "m").predict(TEXTS[:2])[0]["label"] == "cat"


TAGGED = [TaggedWords(("cat", "a", "dog"), "cat a dog", ((0, 3), (4, 5), (6, 9)), ("N", "D", "N"))]
OTHER_TASKS: dict[str, tuple[type[Task[Any]], list[Any]]] = {
    "regress": (Regress, [TextRow("cat", label="1"), TextRow("the dog", label="0")]),
    "tag": (Tag, TAGGED),
    "answer": (Answer, [Question("1", "the cat", "a dog sees", (Stretch("dog", 2),))]),
    "choose": (Choose, [Choice("cat", "", ("sees", "the dog"), 1), Choice("dog", "", ("love", "sees the"), 0)]),
}


@pytest.mark.parametrize("name", OTHER_TASKS)
def test_it_learns_every_other_task(folder: Path, name: str) -> None:
    kind, rows = OTHER_TASKS[name]
    task = kind.fit(rows)
    model, losses = finetuned(folder, task, rows)
    assert losses[-1] < 0.5 * losses[0]
    assert len(predict(task, model, rows, read_folder(folder).require_tokenizer())) == len(rows)


def test_it_embeds(folder: Path, tmp_path: Path) -> None:
    model = heedful.load(folder)
    vectors = model.embed(TEXTS, pooling="last")
    encoder, tokenizer = load_encoder(read_folder(folder)), model.tokenizer
    batch = flat_batch([pieces.ids for pieces in tokenizer.pieces(TEXTS)])
    with torch.no_grad():
        expected = encoder(batch).last[encoder.summary_rows(batch.lengths)]
    np.testing.assert_allclose(vectors, expected.numpy(), atol=1e-6)
    assert model.embed(["cat " * 600], layers=(0, -1), max_length=600).shape == (1, 32)  # no position runs out
    assert write_static_vectors(model, tmp_path / "v.npy") == (tokenizer.vocab_size, 16)


def test_a_state_goes_on_from_batch_to_batch(folder: Path) -> None:
    encoder = load_encoder(read_folder(folder))
    whole, first, second = (flat_batch(ids) for ids in ([[5, 6, 7, 8], [9, 8, 7]], [[5, 6], [9]], [[7, 8], [8, 7]]))
    with torch.no_grad():
        before = encoder(first)
        after = encoder(second, memory=before.memory).last
        torch.testing.assert_close(after, encoder(whole).last[[2, 3, 5, 6]])


def test_depth_freezing_features_and_random_starts(folder: Path) -> None:
    read, task = read_folder(folder), Classify(labels=("cat", "dog"))
    model = start_for_task(read, task.model, seed=5)
    assert not torch.equal(model.encoder.embeddings.weight, load_encoder(read).embeddings.weight)
    depths = {name: layer_depth(model.encoder, name) for name, _ in model.named_parameters()}
    assert set(depths.values()) == {0, 1, 2, 3} and depths["encoder.layers.1.weight_ih_l0"] == 2
    freeze(model, "1")
    assert {depths[name] for name, parameter in model.named_parameters() if parameter.requires_grad} == {2, 3}
    fixed = load_for_task(read, replace(task, features=(-1, 0)).model, seed=0).train()
    assert not fixed.encoder.training and fixed.classifier.in_features == 32


def test_it_can_be_the_encoder_of_a_translation_model(folder: Path, tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    encoder, size = load_encoder(read_folder(folder)), tiny_tokenizer.vocab_size
    config = with_encoder(TransformerConfig(size, size, width=8, heads=2, inner=8, decoder_layers=1), encoder.config)
    assert from_mapping(TransformerConfig, to_mapping(config), "here") == config
    model = Transformer(config, encoder).eval()
    save_translation(model, tmp_path / "t", Sides(tiny_tokenizer, tiny_tokenizer), ("a", "b"))
    again = load_translation(tmp_path / "t").model
    batch = flat_batch([[5, 6, 7]])
    assert torch.equal(again.source_states(batch), model.source_states(batch))


def test_what_it_cannot_do_is_said(folder: Path) -> None:
    model = heedful.load(folder)
    with pytest.raises(HeedfulError, match=r"toy-gru does not guess masked words(.|\n)*heedful embed"):
        model.fill("the [MASK]")
    with pytest.raises(HeedfulError, match="no attention"):
        model.encoder(flat_batch([[5]]), attention=[1])
    with pytest.raises(HeedfulError, match="toy-gru has no pretraining"):
        objective_of(FAMILY)
    with pytest.raises(HeedfulError, match="no named sizes"):
        FAMILY.config_of_size("mini", 100)


def test_without_its_family_the_folder_is_refused_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(families._known, "toy-gru")
    with pytest.raises(HeedfulError, match=r"'toy-gru' is not supported(.|\n)*of the type bert"):
        read_folder(folder)
