"""The mix of layers against its formula, and in a tagger over a frozen ELMo."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.config import to_mapping
from heedful.data.batching import flat_batch
from heedful.data.labelled.dataset import TaggedWords
from heedful.errors import HeedfulError
from heedful.inference.predictor import Predictor
from heedful.models.elmo import Elmo, initialise, sized
from heedful.nn.scalar_mix import ScalarMix
from heedful.schema import Selection
from heedful.tasks.finetuning import TaskObjective, frozen_features, predict
from heedful.tasks.items import ItemSource
from heedful.tasks.tag import Tag
from heedful.text.elmo_pipeline import character_tokenizer


def test_it_is_the_formula_and_starts_as_the_mean() -> None:
    mix = ScalarMix(3)
    layers = [torch.randn(5, 4) for _ in range(3)]
    side_by_side = torch.cat(layers, dim=-1)
    torch.testing.assert_close(mix(side_by_side), torch.stack(layers).mean(0))
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.gamma.fill_(3.0)
    shares = torch.tensor([0.5, -1.0, 2.0]).exp() / torch.tensor([0.5, -1.0, 2.0]).exp().sum()
    expected = 3 * sum(share * layer for share, layer in zip(shares, layers, strict=True))
    torch.testing.assert_close(mix(side_by_side), expected)


def test_weights_can_be_given(tmp_path: Path) -> None:
    """By the setting of the task, and then only the classifier is learned."""
    config = sized("nano", 0).with_dropout(0.0)
    encoder = Elmo(config)
    initialise(encoder, config, seed=0)
    save_model(encoder, tmp_path / "elmo", character_tokenizer())
    rows = [(["cats", "see"], ["N", "V"]), (["dogs", "run"], ["N", "V"])]
    run = {"model": tmp_path / "elmo", "train": rows, "features": (0, 1, 2), "combine": "mix", "budget": "2steps"}
    heedful.finetune("tag", output=tmp_path / "run", set={"mix": "0.2,0.3,0.5"}, **run)
    predictor = heedful.load(tmp_path / "run").predictor
    assert predictor.task.mix == (0.2, 0.3, 0.5)
    assert set(dict(predictor.model.named_parameters())) >= {"classifier.weight", "classifier.bias"}
    assert not any(name.startswith("head.") for name in predictor.model.state_dict())
    batch = flat_batch([character_tokenizer().encode("cats").ids])
    with torch.no_grad():
        hidden = predictor.model.encoder(batch, hidden=(0, 1, 2)).hidden
        mixed = 0.2 * hidden[0][1] + 0.3 * hidden[1][1] + 0.5 * hidden[2][1]
        found = predictor.model(Selection(batch, torch.tensor([1]), (1,)))
        torch.testing.assert_close(found[0], predictor.model.classifier(mixed), rtol=1e-5, atol=1e-5)
    with pytest.raises(HeedfulError, match="2 weights for a mix of 3 layers"):
        heedful.finetune("tag", output=tmp_path / "x", mix=(0.2, 0.8), **run)
    with pytest.raises(HeedfulError, match=r"no mix(.|\n)*`combine` mix"):
        heedful.finetune("tag", output=tmp_path / "x", mix=(1, 1, 1), **{**run, "combine": "sum"})


def test_a_tagger_learns_which_layers_of_elmo_it_needs(tmp_path: Path) -> None:
    config = sized("nano", 0).with_dropout(0.0)
    encoder = Elmo(config)
    initialise(encoder, config, seed=0)
    save_model(encoder, tmp_path / "elmo", character_tokenizer())
    words = ("cats", "see", "dogs", "run")
    spans = ((0, 4), (5, 8), (9, 13), (14, 17))
    rows = [TaggedWords(words, " ".join(words), spans, ("N", "V", "N", "V"))]
    task = Tag.fit(rows, features=(0, 1, 2), combine="mix")
    folder = read_folder(tmp_path / "elmo")
    model = load_for_task(folder, task.model, seed=1).train()
    tokenizer = folder.require_tokenizer()
    items = task.encode(rows, tokenizer)
    known = frozen_features(model.encoder, task.features, task.combine, "cls", items)  # type: ignore[arg-type]
    assert known[0][0].shape == (4, 3 * encoder.width)
    source, objective = ItemSource(items, task.name, batch_size=1, seed=0), TaskObjective(task)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for step in range(25):
        (micro_batch,) = source.step(step)
        loss = objective(model, micro_batch)[task.name]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    mix = model.get_submodule("head.mix")
    assert isinstance(mix, ScalarMix) and mix.weights.abs().min() > 0 and float(loss.detach()) < 0.5
    settings = {"task": task.name, **to_mapping(task)}
    save_for_task(model, tmp_path / "t", tokenizer, task=settings, architecture=task.architecture, labels=task.labels)
    again = Predictor(read_folder(tmp_path / "t")).predict([list(words)])
    assert again == predict(task, model.eval(), rows, tokenizer)
