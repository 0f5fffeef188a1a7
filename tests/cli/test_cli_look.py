"""`heedful look` writes a page with the weights that Python gives."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.look import neighbours_of, position_cosines
from heedful.models.xlnet import XlnetConfig
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_folder import END_OF_TEXT
from heedful.text.xlnet_pipeline import framed_at_the_end
from tests.gpt_folder import byte_level_tokenizer, random_gpt


def look(output: Path, *arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["look", *map(str, arguments), "-o", str(output)])
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    found = re.search(r'id="data">(.*?)</script>', output.read_text(encoding="utf-8"), re.S)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def weights(picture: dict[str, Any]) -> Any:
    stored = np.frombuffer(base64.b64decode(picture["bytes"]), np.uint8) / 255
    return stored.reshape(picture["layers"], picture["heads"], len(picture["rows"]), len(picture["columns"]))


def test_one_text_and_two(tiny: Embedder, tiny_folder: Path, tmp_path: Path) -> None:
    for texts in (["the cat sees"], ["the cat", "a dog"]):
        data = look(tmp_path / f"{len(texts)}.html", tiny_folder, *texts)
        (maps,) = tiny.attention([texts[0] if len(texts) == 1 else (texts[0], texts[1])])
        assert data["pictures"][0]["rows"] == maps.tokens
        np.testing.assert_allclose(weights(data["pictures"][0]), maps.weights, atol=1 / 255)
        assert len(set(data["neighbours"]["texts"])) == len(texts)
        assert len(data["neighbours"]["nearest"]) == tiny.encoder.layer_count + 1


def test_neighbours_are_by_cosine_and_never_the_token_itself(tiny: Embedder) -> None:
    found = neighbours_of(tiny, ["the cat", "the dog"])
    states = np.concatenate(tiny.embed(["the cat", "the dog"], layers=[2], unit="token", normalize=True))
    cosines = states @ states.T
    for token, ranked in enumerate(found.nearest[2]):
        assert token not in [other for other, _ in ranked]
        for other, cosine in ranked:
            assert cosine == pytest.approx(cosines[token, other], abs=1e-5)
    # Before any context, the same word at the same place is the same.
    assert found.nearest[0][1][0] == (5, pytest.approx(1.0, abs=1e-5))
    table = position_cosines(tiny.encoder.embeddings)
    assert table is not None and table.shape == (128, 128)
    np.testing.assert_allclose(np.diag(table), 1.0, atol=1e-5)


@pytest.mark.parametrize("kind", ["transformer", "attention"])
def test_a_translation_model(tiny_translators: dict[str, Path], tmp_path: Path, kind: str) -> None:
    data = look(tmp_path / "t.html", tiny_translators[kind], "the cat", "我爱")
    *own, picture = data["pictures"]
    model: Any = heedful.load(tiny_translators[kind])
    (expected,) = model.alignments(["the cat"], ["我爱"])
    assert (picture["rows"], picture["columns"]) == (expected.target, expected.source)
    np.testing.assert_allclose(weights(picture)[-1].mean(0), expected.weights, atol=2 / 255)
    if kind == "attention":
        assert not own and data["positions"] is None
        with pytest.raises(HeedfulError, match="no Transformer"):
            model.attention(["the cat"], ["我爱"])
        return
    places = np.frombuffer(base64.b64decode(data["positions"]["bytes"]), np.uint8).reshape(
        -1, data["positions"]["size"]
    )
    assert (np.diff(places[0, :3].astype(int)) < 0).all()  # of sinusoids the nearest places are the most alike
    (maps,) = model.attention(["the cat"], ["我爱"])
    for shown, rows, columns, values in (
        (own[0], maps.source, maps.source, maps.encoder),
        (own[1], maps.written, maps.given, maps.decoder),
    ):
        assert (shown["rows"], shown["columns"]) == (rows, columns)
        np.testing.assert_allclose(weights(shown), values, atol=1 / 255)
        np.testing.assert_allclose(values.sum(-1), 1.0, atol=1e-5)
    assert not np.triu(maps.decoder, 1).any()  # nothing looks ahead
    assert maps.written[:-1] == maps.given[1:]


def test_the_three_attentions_give_what_the_layers_compute(tiny_translators: dict[str, Path]) -> None:
    """Weights times values, projected, are what the attention of a layer gives in the model's own pass."""
    model: Any = heedful.load(tiny_translators["transformer"])
    maps, noted = model.attention(["the cat sees"], ["我爱"])[0], list[Any]()
    layer = list(model.folder.model.decoder)[-1].attention
    handle = layer.register_forward_hook(lambda module, given, result: noted.append((given[0], result)))
    model.attention(["the cat sees"], ["我爱"])
    handle.remove()
    ((x, result),) = noted
    value = layer.qkv(x).view(len(x), 3, layer.heads, -1)[:, 2]  # (T, H, d)
    mixed = torch.einsum("hts,shd->thd", torch.from_numpy(maps.decoder[-1]), value).flatten(1)
    torch.testing.assert_close(layer.out(mixed), result, atol=1e-5, rtol=1e-4)


def test_a_gpt_looks_only_back(tmp_path: Path) -> None:
    gpt_folder, tokenizer = tmp_path / "gpt", byte_level_tokenizer()
    end = tokenizer.id_of("<|endoftext|>")
    gpt = random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    save_model(gpt, gpt_folder, tokenizer, foreign={"bos_token_id": end, "eos_token_id": end})
    data = look(tmp_path / "gpt.html", gpt_folder, "the cat in")
    (maps,) = heedful.load(gpt_folder).attention(["the cat in"])  # type: ignore[union-attr]
    assert data["pictures"][0]["rows"] == maps.tokens
    np.testing.assert_allclose(weights(data["pictures"][0]), maps.weights, atol=1 / 255)
    np.testing.assert_allclose(maps.weights.sum(-1), 1.0, atol=1e-5)
    assert not np.triu(maps.weights, 1).any()


def test_an_xlnet_looks_both_ways(tmp_path: Path) -> None:
    plain = byte_level_tokenizer()
    named = Tokenizer(plain.library, {**plain.special_tokens, "sep": END_OF_TEXT, "cls": "<unused0>"})
    model = XlnetForPretraining(XlnetConfig(plain.vocab_size, d_model=32, n_layer=2, n_head=2, d_inner=48))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.normal_(0.0, 0.3, generator=torch.Generator().manual_seed(number))
    save_model(model, tmp_path / "xlnet", framed_at_the_end(named))
    data = look(tmp_path / "xlnet.html", tmp_path / "xlnet", "the cat", "in")
    (maps,) = heedful.load(tmp_path / "xlnet").attention([("the cat", "in")])  # type: ignore[list-item, union-attr]
    np.testing.assert_allclose(weights(data["pictures"][0]), maps.weights, atol=1 / 255)
    np.testing.assert_allclose(maps.weights.sum(-1), 1.0, atol=1e-5)
    assert maps.weights.shape == (2, 2, len(maps.tokens), len(maps.tokens))
    assert np.triu(maps.weights, 1).any() and maps.tokens[-1] == "<unused0>"  # what sums it up stands at the end


def test_wrong_calls(tiny_folder: Path, tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text("")
    for folder, arguments, said in (
        (tiny_folder, ["a", "b", "c", "-o", tmp_path / "x.html"], "3 texts"),
        (tiny_translators["transformer"], ["a", "b", "c", "-o", tmp_path / "x.html"], "3 texts"),
        (tiny_folder, ["a", "-o", tmp_path / "there.html"], "there.html"),
    ):
        result = CliRunner().invoke(cli, ["look", str(folder), *map(str, arguments)])
        assert result.exit_code != 0 and said in f"{result.exception} {result.output}"
