"""`heedful whiten`: what it writes is whitened, loads everywhere, and bad input is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import heedful
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder
from heedful.inference.whitened import whiten
from heedful.models.gpt import GptConfig
from heedful.text.tokenizer import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LINES = [f"{a} {b} the {c}{b}" for a in LETTERS[::2] for b in LETTERS[::3] for c in LETTERS[::5]]


@pytest.mark.parametrize("layer", [0, 2, -1])
def test_the_vectors_of_the_lines_are_whitened(tiny: Embedder, tiny_folder: Path, tmp_path: Path, layer: int) -> None:
    made = whiten(tiny_folder, LINES, tmp_path / "vectors", layer=layer)
    assert (made.lines, made.width, made.layer) == (len(LINES), 32, layer % 4)
    vectors = np.asarray(load_embedder(made.path, "cpu").embed(LINES))
    np.testing.assert_allclose(vectors.mean(0), 0, atol=1e-3)
    covariance = np.cov(vectors.T, bias=True)
    np.testing.assert_allclose(covariance - np.diag(covariance.diagonal()), 0, atol=1e-3)
    np.testing.assert_allclose(covariance.diagonal()[:4], 1, atol=1e-3)
    assert (covariance.diagonal() < 1 + 1e-3).all()  # less where the lines hardly differ


def test_a_layer_is_that_of_the_model_before_the_map(tiny: Embedder, tiny_folder: Path, tmp_path: Path) -> None:
    made = whiten(tiny_folder, LINES, tmp_path / "vectors", layer=2)
    settings = read_folder(made.path).sentence
    assert settings is not None
    dense = settings.dense_layers()
    assert dense is not None
    states = torch.from_numpy(np.asarray(tiny.embed(LINES[:5], layers=(2,))))
    ours = load_embedder(made.path, "cpu").embed(LINES[:5])
    np.testing.assert_allclose(dense(states).numpy(), ours, atol=1e-3)


def test_embeddings_alone_know_no_order_and_no_place(tiny_folder: Path, tmp_path: Path) -> None:
    whiten(tiny_folder, LINES, tmp_path / "vectors")
    encoder = load_encoder(read_folder(tmp_path / "vectors"))
    assert encoder.config.layers == 0 and not encoder.get_parameter("embeddings.position.weight").any()
    one, other = load_embedder(tmp_path / "vectors", "cpu").embed(["the cat sees", "sees cat the"])
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_sentence_transformers_makes_the_same_vectors(tiny_folder: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    for layer in (0, 1):
        made = whiten(tiny_folder, LINES, tmp_path / str(layer), layer=layer, width=8)
        theirs = library.SentenceTransformer(str(made.path), device="cpu").encode(LINES[:9])
        np.testing.assert_allclose(load_embedder(made.path, "cpu").embed(LINES[:9]), theirs, atol=1e-3, rtol=1e-3)


def test_the_command_says_what_it_made_and_replaces_nothing_unasked(tiny_folder: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n\n".join(LINES), encoding="utf-8")
    asked = ["whiten", str(tiny_folder), str(lines), "-o", str(tmp_path / "out"), "--width", "8"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0 and f"8 numbers from the embeddings, over {len(LINES):,} lines" in done.output
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"`{tiny_folder.name}`" in card and "8 numbers from the embeddings" in card and "pooling mean" in card
    again = CliRunner().invoke(cli, asked)
    assert isinstance(again.exception, HeedfulError)
    assert CliRunner().invoke(cli, [*asked, "--overwrite"]).exit_code == 0


def test_texts_that_are_cut_are_told_plainly(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join([*LINES, "cat " * 600]), encoding="utf-8")
    done = CliRunner().invoke(cli, ["whiten", str(tiny_folder), str(tmp_path / "lines.txt"), "-o", str(tmp_path / "v")])
    assert any(line.startswith("warning: 1 of ") for line in done.stderr.splitlines())


def test_python_writes_what_the_command_writes(tiny_folder: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(LINES), encoding="utf-8")
    CliRunner().invoke(cli, ["whiten", str(tiny_folder), str(lines), "-o", str(tmp_path / "command"), "--layer", "-1"])
    for place, given in (("path", str(lines)), ("memory", LINES)):
        heedful.whiten(tiny_folder, given, tmp_path / place, layer=-1, progress=False)
        for file in ("model.safetensors", "2_Dense/model.safetensors"):
            assert (tmp_path / place / file).read_bytes() == (tmp_path / "command" / file).read_bytes()


def test_python_reads_other_encodings_too(tiny_folder: Path, tmp_path: Path) -> None:
    lines = [f"{line} 中国" for line in LINES]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="gb18030")
    asked = {"encoding": "gb18030", "force": True, "progress": False}
    heedful.whiten(tiny_folder, tmp_path / "lines.txt", tmp_path / "path", **asked)
    heedful.whiten(tiny_folder, lines, tmp_path / "memory", progress=False)
    one, other = (tmp_path / name / "2_Dense" / "model.safetensors" for name in ("path", "memory"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("lines", "told"),
    [([], "0 lines"), (LINES[:20], "20 lines with text are too few"), (["the cat"] * 99, "the same vector")],
)
def test_too_few_lines_or_all_the_same_are_refused(
    tiny_folder: Path, tmp_path: Path, lines: list[str], told: str
) -> None:
    with pytest.raises(HeedfulError, match=told):
        whiten(tiny_folder, lines, tmp_path / "vectors")
    assert not (tmp_path / "vectors").exists()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"layer": 9}, "there is no layer 9"),
        ({"width": 0}, "vectors of 0 numbers"),
        ({"pooling": "median"}, "there is no pooling 'median'"),
    ],
)
def test_what_is_not_there_is_refused(tiny_folder: Path, tmp_path: Path, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(HeedfulError, match=told):
        whiten(tiny_folder, LINES, tmp_path / "vectors", **asked)


def test_a_model_that_is_no_bert_is_refused(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    config = GptConfig(vocab_size=tiny_tokenizer.vocab_size, n_embd=8, n_layer=1, n_head=1, n_positions=64)
    save_model(config.build(), tmp_path / "gpt", tiny_tokenizer)
    with pytest.raises(HeedfulError, match="of the type gpt2 cannot be cut above a layer"):
        whiten(tmp_path / "gpt", LINES, tmp_path / "vectors")
