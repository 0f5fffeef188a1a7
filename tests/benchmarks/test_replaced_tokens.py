"""benchmarks/replaced_tokens.py: what is drawn, what counts as replaced, the loss, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from heedful.data.batching import flat_batch
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.source import PretrainingMicroBatch
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.text.tokenizer import Tokenizer

MASKED = torch.tensor([1, 3, 4, 8])
LENGTHS = (7, 5)


@pytest.fixture
def module(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("replaced_tokens")


@pytest.fixture
def batch() -> PretrainingMicroBatch:
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 90, (sum(LENGTHS),), generator=rng)
    labels = ids[MASKED].clone()
    ids[MASKED] = 4  # [MASK]
    return PretrainingMicroBatch(flat_batch([one.tolist() for one in ids.split(LENGTHS)]), MASKED, labels, None, 2)


def made(module: ModuleType, pieces: int = 90) -> Any:
    """A small discriminator with a smaller generator, all of whose weights are random."""
    config = BertConfig(pieces, 32, 2, 4, 48, initializer_range=0.2).with_dropout(0.0)
    started = BertForPretraining(config)
    initialise(started, config, seed=1)
    with torch.no_grad():
        started.get_parameter("mlm.bias").normal_(generator=torch.Generator().manual_seed(2))
    return module.ReplacedTokens(started, module.Side(0.15, 1, 16), seed=3)


def seen_by(model: Any, run: Callable[[], Any]) -> tuple[Tensor, Any]:
    """The ids that the discriminator was given, and what came of it."""
    seen: list[Tensor] = []
    hook = model.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].ids))
    found = run()
    hook.remove()
    (ids,) = seen
    return ids, found


def test_the_losses_are_the_written_out_formula(module: ModuleType, batch: PretrainingMicroBatch) -> None:
    model = made(module)
    ids, found = seen_by(model, lambda: module.losses(model, batch))
    states = model.generator.encoder(batch.batch).last[MASKED]
    hidden = model.generator.mlm
    logits = hidden.norm(hidden.activation(hidden.dense(states))) @ model.encoder.token_matrix.T + hidden.bias
    right = torch.stack([row.exp()[label] / row.exp().sum() for row, label in zip(logits, batch.labels, strict=True)])
    told = model.head(model.encoder(flat_batch([one.tolist() for one in ids.split(LENGTHS)])).last).sigmoid()
    originals = batch.batch.ids.index_copy(0, MASKED, batch.labels)
    loss = -right.log().mean() - 50 * torch.where(ids == originals, (1 - told).log(), told.log()).mean()
    assert found["mlm"].item() / batch.counts["mlm"] == pytest.approx(loss.item(), rel=1e-4)


def test_only_masked_places_are_filled_and_a_token_drawn_as_it_was_counts_as_original(
    module: ModuleType, batch: PretrainingMicroBatch
) -> None:
    model = made(module)
    with torch.no_grad():  # it always says the piece that stood at the first masked place
        model.generator.mlm.bias[batch.labels[0]] += 1000
    ids, found = seen_by(model, lambda: module.judgement(model, batch))
    others = [place for place in range(12) if place not in MASKED.tolist()]
    assert torch.equal(ids[others], batch.batch.ids[others])
    assert torch.equal(ids[MASKED], batch.labels[:1].expand(4)) and batch.labels.unique().numel() == 4
    assert found.replaced.nonzero().flatten().tolist() == MASKED[1:].tolist()


def test_pieces_are_drawn_as_often_as_the_softmax_says(module: ModuleType) -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 2.0, -1.0, 1.0, -30.0])
    often = module.drawn(logits.expand(40_000, 5)).bincount(minlength=5) / 40_000
    torch.testing.assert_close(often, logits.softmax(0), atol=0.01, rtol=0)
    assert often[4] == 0


def test_vectors_are_shared_and_no_gradient_goes_through_what_was_drawn(
    module: ModuleType, batch: PretrainingMicroBatch
) -> None:
    model = made(module)
    assert model.generator.encoder.token_matrix is model.encoder.token_matrix
    names = [name for name, _ in model.named_parameters()]
    assert len([name for name in names if "embeddings.token" in name]) == 1 and "pooler" not in " ".join(names)
    told = module.judgement(model, batch)
    told.told.sum().backward(retain_graph=True)
    assert all(p.grad is None for name, p in model.named_parameters() if name.startswith("generator."))
    before = model.encoder.token_matrix.grad.clone()
    told.guesses.logsumexp(1).sum().backward()
    assert not torch.equal(before, model.encoder.token_matrix.grad)  # both move the vectors
    assert model.generator.mlm.dense.weight.grad.abs().sum() > 0


def test_both_sides_are_trained_and_kept_as_ordinary_folders(
    module: ModuleType, tiny_tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"the cat sees dog {n}.\nthe dog loves cat {n}.\n\n" for n in range(80)), encoding="utf-8")
    build_corpus([str(text)], tmp_path / "corpus", tiny_tokenizer, reading=ReadingSettings(held_out_share=0.2))
    monkeypatch.setattr(module.Pretraining, "paces", lambda _, ready: dict.fromkeys(ready, 1.0))
    bench = module.Pretraining(tmp_path / "corpus", tmp_path / "work", seconds=3.9, size="nano")
    masked, replaced = made = bench.made(["masked", "replaced-15"], 0)
    assert masked["steps"] == replaced["steps"] == 3 and masked["tokens"] == replaced["tokens"] > 0
    assert 0 < replaced["replaced"] < 0.25 and "replaced" not in masked
    first, second = (heedful.load(bench.folder(side, 0) / "model", "cpu") for side in ("masked", "replaced-15"))
    for one in (first, second):
        assert one.embed(["the cat sees"], pooling="mean").shape == (1, 64)
    assert {one.folder.config["model_type"] for one in (first, second)} == {"bert"}
    stamp = (tmp_path / "work" / "masked-0" / "model" / "config.json").stat().st_mtime_ns
    assert bench.made(["masked", "replaced-15"], 0) == made  # and are not made again
    assert (tmp_path / "work" / "masked-0" / "model" / "config.json").stat().st_mtime_ns == stamp


def test_sides_are_judged_run_by_run_on_rows_that_choose(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run of a model has a file of its own, and none of them looks at dev."""
    asked: list[tuple[str, str, float, int, bool]] = []

    class Bench:
        def __init__(self, task: Any, model: Path, output: Path, work: Path, limit: int | None) -> None:
            self.output = output

        def chosen(self, way: Any, weights: str) -> float:
            return float(max(way.rates))

        def score(self, way: Any, weights: str, rate: float, seed: int, choosing: bool = False) -> float:
            asked.append((self.output.name, weights, rate, seed, choosing))
            return 0.5 + 0.1 * ("replaced" in self.output.name) * seed

    monkeypatch.setattr(module, "Bench", Bench)
    monkeypatch.setattr(module.Pretraining, "__init__", lambda self, corpus, work, seconds: setattr(self, "work", work))
    monkeypatch.setattr(module.Pretraining, "made", lambda _, sides, seed: [{"side": s, "seed": seed} for s in sides])
    (tmp_path / "rte").mkdir()
    rows = "".join(f"{n % 2}\tone\tother\n" for n in range(10))
    (tmp_path / "rte" / "train.tsv").write_text(f"label\tsentence1\tsentence2\n{rows}", encoding="utf-8")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    monkeypatch.setattr(module, "prepare_process", lambda: None)  # the tests' process is not this script's
    told = ["replaced_tokens.py", "C", "-o", str(tmp_path / "work"), "--sides", "masked,replaced-15", "--tasks", "RTE"]
    monkeypatch.setattr("sys.argv", [*told, "--results", str(tmp_path / "out.json")])
    module.main()
    pretrained, scored = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["tables"]
    assert len(pretrained["rows"]) == 4
    assert scored["columns"] == ["task", "judged by", "masked", "replaced-15", "random", "replaced-15 − masked (95 %)"]
    tuned, mean = scored["rows"][:2]
    assert tuned[:5] == ["RTE, fine-tuned", "accuracy, 2 rows", "0.5000 (0.001)", "0.6500 (0.001)", "0.5000 (0.001)"]
    # The differences are 0.1, 0.2, 0.1 and 0.2: a spread of 0.0577, times 3.182 / 2.
    assert tuned[5] == mean[5] == "+0.1500 (+0.0581 to +0.2419)" and mean[0] == "all, fine-tuned"
    assert all(choosing for *_, choosing in asked)
    assert len({(name, rate) for name, _, rate, _, _ in asked}) == len(asked) == 2 * (4 + 4 + 2)
    assert {name for name, weights, *_ in asked if weights == "random"} == {
        "scores-random-0-1.json",
        "scores-random-0-2.json",
    }
