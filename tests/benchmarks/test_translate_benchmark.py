"""The reference that translation is raced against computes the same as we do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from heedful.checkpoints.translation_folder import load_translation
from heedful.data.bitext.pairs import lay_out
from heedful.models.transformer import Transformer, TransformerConfig, initialise_transformer
from heedful.text.sides import Symbols

SYMBOLS = Symbols(2, 3, (0, 2, 4))


@pytest.mark.parametrize("share", [True, False])
def test_marian_with_our_weights_is_our_model(script: Callable[[str], ModuleType], share: bool) -> None:
    marian = script("marian")
    model = Transformer(TransformerConfig(40, 40 if share else 30, share, 2, 3, 32, 4, 48, max_length=32)).eval()
    initialise_transformer(model, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    bitext = lay_out([[2, 7, 8, 9, 3], [2, 5, 3]], [[2, 6, 7, 3], [2, 20, 21, 22, 23, 3]])
    given = marian.padded(bitext)
    labels = given.pop("labels")
    theirs = marian.with_weights(marian.marian_of(model.config, SYMBOLS), model)
    with torch.inference_mode():
        expected = model.logits(model(bitext))
        found = theirs(**given).logits[labels != -100]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert labels[labels != -100].tolist() == bitext.labels.tolist()


def test_all_engines_say_the_same(
    script: Callable[[str], ModuleType], tiny_translators: dict[str, Path], tmp_path: Path
) -> None:
    engines = script("translate_engines").ENGINES
    texts = ["the cat", "我爱北京", "love the dog, the cat", "zebra!"]
    said = {}
    for name, build in engines.items():
        (tmp_path / name).mkdir()
        said[name] = build(tiny_translators["transformer"], tmp_path / name)(texts)
    assert all(len(found) == len(texts) for found in said.values())
    assert said["ctranslate2 (workers)"] == said["ctranslate2 (threads)"]


def test_tables(script: Callable[[str], ModuleType], tiny_translators: dict[str, Path]) -> None:
    speed = script("translate_speed")
    seconds = {"heedful": [1.0, 2.0], "other": [4.0, 6.0]}
    said = {"heedful": ["a", "b"], "other": ["a", "c"]}
    (mine, other) = speed.speed_table(seconds, said, 30, dict.fromkeys(seconds, "1")).rows
    assert mine[3] == "1.00" and other[3:] == ["3.50", "3.00 … 4.00", "50.0%"]
    assert "2 + 2 layers" in speed.described(load_translation(tiny_translators["transformer"]))


@pytest.mark.processor
def test_trainers_take_their_rounds(
    script: Callable[[str], ModuleType],
    tiny_translators: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainers = script("translate_trainers")
    rows = "".join(f"the cat {'sees ' * (n % 7)}\t我爱{'北京' * (n % 5 + 1)}\n" for n in range(40))
    (tmp_path / "train.tsv").write_text(f"en\tzh\n{rows}", encoding="utf-8")
    monkeypatch.setattr(trainers, "multi30k", lambda name: tmp_path / "train.tsv")
    tokens = {}
    for name, build in trainers.TRAINERS.items():
        take = build(2, 200, tiny_translators["transformer"], tmp_path)
        tokens[name] = take("float32")
        assert take("bfloat16") == tokens[name]
    assert tokens["heedful"] == tokens["transformers (same batches)"] > 200
    folder = load_translation(tiny_translators["transformer"])
    makers = trainers.sorted_batches, trainers.random_batches
    alike, drawn = (make(trainers.training_pairs(folder), 2, 200) for make in makers)
    assert sum(p.padding for p in drawn) > sum(p.padding for p in alike)


def test_the_profile_counts_the_products(
    script: Callable[[str], ModuleType],
    tiny_translators: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = script("translate_profile")
    translator = found.load_translator(tiny_translators["transformer"], "cpu")
    operations = found.counted_products(translator)
    translator.folder.model.logits(torch.ones(3, translator.folder.model.config.width))
    config = translator.folder.model.config
    assert operations == [2 * 3 * config.width * config.target_vocab_size]
    (tmp_path / "test.tsv").write_text("en\tzh\nthe cat\t我爱\nthe dog sees\t北京\n", encoding="utf-8")
    monkeypatch.setattr(found, "multi30k", lambda name: tmp_path / "test.tsv")
    threads = torch.get_num_threads()
    arguments = ["translate_profile.py", str(tiny_translators["transformer"]), "-o", str(tmp_path / "profile.json")]
    monkeypatch.setattr("sys.argv", arguments)
    found.main()
    torch.set_num_threads(threads)
    rows = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))["tables"][0]["rows"]
    assert sum(float(row[2].rstrip("%")) for row in rows) == pytest.approx(100, abs=1)
