"""The commands of docs/own-domain.md are those of its recipe, and run one after the other on the toy world."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.cli.main import cli
from heedful.models.bert import BertConfig, initialise
from heedful.toy.tasks import rows, stories

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "recipes" / "own_domain.sh"
SMALLER = {
    **{"--epochs 5": "--epochs 1", "--seeds 3": "--seeds 2", "--vocab-size 8000": "--vocab-size 300"},
    **{"64:100%": "24:100%", "--max-length 64": "--max-length 24", '"$BUDGET"': "3steps", '"$SIZE"': "nano"},
}


def commands(text: str) -> list[str]:
    """The commands of a script, each in one line, without comments."""
    joined = text.replace("\\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line.startswith("heedful ")]


def of_the_page() -> list[str]:
    text = (ROOT / "docs" / "own-domain.md").read_text(encoding="utf-8")
    return commands("".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)))


def test_the_page_and_the_recipe_have_the_same_commands() -> None:
    assert of_the_page() == commands(RECIPE.read_text(encoding="utf-8"))
    assert subprocess.run(["sh", "-n", str(RECIPE)], check=False).returncode == 0


@pytest.fixture
def field(tmp_path: Path) -> Path:
    """A field: sentences of the toy world, pairs, a few labels; and a BERT with few pieces, to be extended."""
    sentences = [sentence for story in stories("train", count=60)["en"] for sentence in story]
    (tmp_path / "text.tsv").write_text("text\n" + "\n".join(sentences) + "\n", encoding="utf-8")
    judged = [f"{row.sentence1}\t{row.sentence2}\t{row.score}" for row in rows("similarity", "en", "dev", 30, 0)]
    (tmp_path / "judged.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")
    meant = [f"{row.sentence1}\t{row.sentence2}" for row in rows("similarity", "en", "dev", 30, 0)]
    (tmp_path / "meant.tsv").write_text("text\tpair\n" + "\n".join(meant) + "\n", encoding="utf-8")
    for name, split in (("few", "train"), ("dev", "dev")):
        labelled = [f"{row.label}\t{row.sentence}" for row in rows("sentiment", "en", split, 24, 0)]
        (tmp_path / f"{name}.tsv").write_text("label\tsentence\n" + "\n".join(labelled) + "\n", encoding="utf-8")
    tokenizer = heedful.train_tokenizer(
        tmp_path / "text.tsv", tmp_path / "general-words", vocab_size=120, progress=False
    )
    config = BertConfig(
        tokenizer.vocab_size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    encoder = config.build()
    initialise(encoder, config, seed=0)
    save_model(encoder, tmp_path / "general", tokenizer, sentence=SentenceSettings("mean"))
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*longer than 24 tokens")
def test_the_commands_run_on_the_toy_world(field: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(field)
    whole = "\n".join(of_the_page())
    for written, smaller in SMALLER.items():
        assert written in whole
        whole = whole.replace(written, smaller)
    for line in whole.splitlines():
        arguments = shlex.split(line.replace('"$MODEL"', str(field / "general")))[1:]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, (line, done.output, done.exception)
        if arguments[0] == "similarity":
            assert "spearman" in done.output.lower()
        if arguments[0] == "evaluate":
            assert "recall@1 " in done.output
    for run in (
        "further",
        "own",
        "further-vectors",
        "own-vectors",
        "with-general",
        "with-further",
        "with-own",
        "small",
    ):
        assert (field / run / "model" / "config.json").is_file(), run
    assert heedful.load("further").tokenizer.vocab_size > heedful.load("general").tokenizer.vocab_size
