"""A tiny tokenizer and a tiny random BERT folder, made once; nothing is downloaded."""

from __future__ import annotations

import random
import resource
import string
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import torch

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.translation_folder import save_translation
from heedful.inference.embedder import Embedder
from heedful.models.bert import BertConfig, BertForPretraining
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.models.transformer import Transformer, TransformerConfig, initialise_transformer
from heedful.text.sides import Sides
from heedful.text.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
WORDS = ["the", "cat", "dog", "sees", "love", "##s", "##ing", "un", "##afford", "##able"]
VOCABULARY = list(dict.fromkeys([*SPECIAL, *LETTERS, *string.digits, *".,!?'", *WORDS, *"中国美苹果我爱北京，。"]))


@pytest.fixture(autouse=True)
def denormals_as_they_were() -> Iterator[None]:
    """A trainer flushes denormal numbers for its whole process; the next test shall not feel it."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """Within it the kernel really refuses to write more than so many bytes to a file."""

    @contextmanager
    def full(free_bytes: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (free_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return full


@pytest.fixture(scope="session")
def tiny_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A WordPiece tokenizer of about a hundred pieces, English and Chinese."""
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in VOCABULARY), encoding="utf-8")
    return Tokenizer.load(folder)


@pytest.fixture(scope="session")
def tiny_folder(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder: 3 layers, width 32, 512 positions, random weights and both pretraining heads."""
    config = BertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
    )
    model = BertForPretraining(config)
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():  # biases too: zeros would hide mistakes
            parameter.normal_(0.0, 0.2, generator=rng)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(model, folder, tiny_tokenizer)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Embedder:
    """The tiny folder, loaded as users load it."""
    return heedful.load(tiny_folder, "cpu")


@pytest.fixture(scope="session")
def sentences() -> Callable[[int], list[str]]:
    """So many texts of mixed length and language, always the same ones."""

    def make(count: int) -> list[str]:
        rng = random.Random(count)
        words = ["the", "cat", "loves", "unaffordable", "中国", "苹果。", "42", "zebra!", "🙂", "Łódź"]
        return [" ".join(rng.choices(words, k=rng.choice([0, 1, 3, 8, 30]))) for _ in range(count)]

    return make


@pytest.fixture(scope="session")
def tiny_translators(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of random translation models by their kind: two Transformers, attention, and an RNN without it."""
    size = tiny_tokenizer.vocab_size
    shape = {"encoder_layers": 2, "decoder_layers": 2, "width": 32, "heads": 4, "inner": 48, "max_length": 64}
    rnn = {"embedding_size": 24, "hidden_size": 32}
    models: dict[str, Transformer | Seq2Seq] = {
        "transformer": Transformer(TransformerConfig(size, size, **shape)),
        "pre-norm": Transformer(
            TransformerConfig(size, size, share=False, pre_norm=True, positions="learned", **shape)
        ),
        "attention": Seq2Seq(Seq2SeqConfig(size, size, **rnn)),
        "rnn": Seq2Seq(Seq2SeqConfig(size, size, decoder="3", **rnn)),
    }
    folder, rng = tmp_path_factory.mktemp("translators"), torch.Generator().manual_seed(0)
    for name, model in models.items():
        (initialise_transformer if isinstance(model, Transformer) else initialise_seq2seq)(model, seed=0)
        with torch.no_grad():
            for parameter in model.parameters():  # zeros and ones would hide mistakes
                parameter += torch.empty_like(parameter).normal_(0.0, 0.2, generator=rng)
        other = tiny_tokenizer if name == "transformer" else Tokenizer(tiny_tokenizer.library)
        save_translation(model.eval(), folder / name, Sides(tiny_tokenizer, other), ("en", "zh"))
    return {name: folder / name for name in models}
