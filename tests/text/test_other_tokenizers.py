"""Tokenizers of other models than BERT: byte-level BPE as RoBERTa's, SentencePiece as XLM-R's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from heedful.checkpoints.folder import read_folder
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LINES = ["the cat sees the dog", "un chat voit le chien", "我爱北京", "what the dog sees, the cat loves!"] * 3
TEXTS = ["the cat", " a  dog,", "我 🙂 you", "", "the <mask> sees", "Straße\tis\nlong"]


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as RoBERTa's: vocab.json, merges.txt and tokenizer.json, and not a word about special tokens."""
    folder = tmp_path_factory.mktemp("roberta")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(LINES, vocab_size=330, min_frequency=1, special_tokens=SPECIAL)
    trained.save_model(str(folder))
    mask = tokenizers.AddedToken("<mask>", lstrip=True)  # as in the one that was given out
    whole = transformers.RobertaTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), mask_token=mask)
    whole.backend_tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def theirs(folder: Path, **options: bool) -> transformers.PreTrainedTokenizerFast:
    mask = tokenizers.AddedToken("<mask>", lstrip=True)
    return transformers.RobertaTokenizerFast.from_pretrained(folder, mask_token=mask, **options)


@pytest.mark.parametrize("lacking", ["nothing", "tokenizer.json"])
def test_byte_level_bpe_as_transformers_reads_it(roberta: Path, tmp_path: Path, lacking: str) -> None:
    for file in roberta.iterdir():
        if file.name != lacking:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer, other = Tokenizer.load(tmp_path), theirs(roberta)
    assert [tokenizer.special_tokens[role] for role in ("cls", "pad", "sep", "unk", "mask")] == SPECIAL
    for text in TEXTS:
        assert tokenizer.encode(text).ids == other(text)["input_ids"]
    pair = tokenizer.encode("the cat", "a dog")
    assert pair.ids == other("the cat", "a dog")["input_ids"] and set(pair.type_ids) == {0}
    assert tokenizer.frame.pair.between.ids == (2, 2)
    assert tokenizer.mask_id == other.mask_token_id


def test_a_folder_with_vocabulary_and_merges_alone_has_its_tokenizer(roberta: Path, tmp_path: Path) -> None:
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    rows = Tokenizer.load(roberta).vocab_size
    transformers.RobertaModel(transformers.RobertaConfig(vocab_size=rows, **small)).save_pretrained(tmp_path)
    assert read_folder(tmp_path).tokenizer is None
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes((roberta / name).read_bytes())
    assert read_folder(tmp_path).require_tokenizer().encode("the cat").ids == theirs(roberta)("the cat")["input_ids"]


def test_words_one_by_one_have_a_space_before_them(roberta: Path) -> None:
    words = ["the", "cat", "sees", "我"]
    (encoding,) = Tokenizer.load(roberta).encode_words([words])
    expected = theirs(roberta, add_prefix_space=True)(words, is_split_into_words=True)
    assert encoding.ids == expected["input_ids"][1:-1]
    assert encoding.word_ids == expected.word_ids()[1:-1]


def test_what_is_saved_comes_back(roberta: Path, tmp_path: Path) -> None:
    Tokenizer.load(roberta).save(tmp_path)
    again, other = Tokenizer.load(tmp_path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert again.encode(text).ids == theirs(roberta)(text)["input_ids"] == other(text)["input_ids"]


def test_a_vocabulary_without_its_merges_is_refused(roberta: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_bytes((roberta / "vocab.json").read_bytes())
    with pytest.raises(HeedfulError, match=r"merges"):
        Tokenizer.load(tmp_path)
    (tmp_path / "vocab.json").write_text("[1, 2]")
    (tmp_path / "merges.txt").write_text("a b\n")
    with pytest.raises(HeedfulError, match=r"vocab\.json"):
        Tokenizer.load(tmp_path)


def test_sentencepiece_by_the_tokenizers_library(tmp_path: Path) -> None:
    library = tokenizers.Tokenizer(models.Unigram())
    library.normalizer = normalizers.NFKC()
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    library.train_from_iterator(
        LINES, trainers.UnigramTrainer(vocab_size=90, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    )
    ends = [(token, library.token_to_id(token)) for token in ("<s>", "</s>")]
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=ends
    )
    library.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    tokenizer = Tokenizer.load(tmp_path)
    other = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert tokenizer.encode(text).ids == other(text)["input_ids"]
    assert (tokenizer.cls_id, tokenizer.sep_id) == (0, 2)
    (words,) = tokenizer.encode_words([["the", "cat"]])
    assert words.ids == other(["the", "cat"], is_split_into_words=True)["input_ids"][1:-1]
