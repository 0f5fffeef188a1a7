"""XLNet's tokenizer from a SentencePiece file, against SentencePiece itself and against `transformers`."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentencepiece
import transformers

from heedful.errors import HeedfulError
from heedful.text.sentencepiece_file import read_sentencepiece
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train
from heedful.text.xlnet_pipeline import framed_at_the_end, read_spiece

LINES = [
    "The quick brown fox jumps over the lazy dog, and then it sleeps.",
    "A dog and a fox are not the same, although both have four legs.",
    "She said: never jump over sleeping dogs (or foxes) again!",
    "The legs of the table are brown; the table is quick to fall.",
] * 5
TEXTS = [*LINES[:4], "  foxes   sleep ", "ﬁve ½ naïve Łódź", "``quoted''", "中国 zebra ☃", "", "a<sep>b"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spiece")
    (folder / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    train_model(folder, "unigram")
    return folder


def train_model(folder: Path, kind: str) -> None:
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines.txt"), model_prefix=str(folder / "spiece"), vocab_size=66, model_type=kind,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"], minloglevel=2,
    )  # fmt: skip


def test_pieces_are_those_of_sentencepiece(folder: Path) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    ours = read_spiece(folder)
    assert ours.vocabulary == [theirs.id_to_piece(number) for number in range(theirs.get_piece_size())]
    for text in [*LINES[:4], "  foxes   sleep ", "ﬁve ½"]:
        assert ours.pieces([text])[0].ids == theirs.encode(text)
    assert ours.decode(ours.encode(LINES[0]).ids) == theirs.decode(theirs.encode(LINES[0]))


def test_texts_and_pairs_are_those_of_transformers(folder: Path) -> None:
    theirs = transformers.XLNetTokenizer.from_pretrained(folder)
    ours = read_spiece(folder)
    for text in TEXTS:
        expected = theirs(text, LINES[1], return_token_type_ids=True)
        found = ours.encode(text, LINES[1])
        assert (found.ids, found.type_ids) == (expected["input_ids"], expected["token_type_ids"]), text
    assert ours.encode("").tokens == ["<sep>", "<cls>"]


def test_it_is_the_same_after_saving_and_for_transformers_too(folder: Path, tmp_path: Path) -> None:
    ours = read_spiece(folder)
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.special_tokens == ours.special_tokens
    (tmp_path / "bare").mkdir()
    (tmp_path / "tokenizer.json").rename(tmp_path / "bare" / "tokenizer.json")
    alone = Tokenizer.load(tmp_path / "bare")  # as published folders are: no word of which token is which
    assert alone.special_tokens == ours.special_tokens
    for text in TEXTS:
        assert ours.encode(text).ids == again.encode(text).ids == alone.encode(text).ids == theirs(text)["input_ids"]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_our_own_tokenizers_are_framed_at_the_end(kind: str) -> None:
    tokenizer = train(LINES, kind, 400)  # type: ignore[arg-type]
    framed = framed_at_the_end(tokenizer)
    one, two = framed.encode("the dog"), framed.encode("the dog", "a fox")
    sep, cls = framed.sep_id, framed.cls_id
    plain = tokenizer.pieces(["the dog", "a fox"])
    assert one.ids == [*plain[0].ids, sep, cls] and one.type_ids[-1] == 2
    assert two.ids == [*plain[0].ids, sep, *plain[1].ids, sep, cls]
    assert one.offsets[:-2] == tokenizer.encode("the dog").offsets[1:-1]
    assert framed.frame.summary_row(5) == 4


def test_bad_files_are_refused_by_name(folder: Path, tmp_path: Path) -> None:
    data = (folder / "spiece.model").read_bytes()
    (tmp_path / "spiece.model").write_bytes(data[:-7])
    with pytest.raises(HeedfulError, match=r"not a SentencePiece model(.|\n)*spiece\.model(.|\n)*tokenizer\.json"):
        read_spiece(tmp_path)
    (tmp_path / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    train_model(tmp_path, "bpe")
    with pytest.raises(HeedfulError, match="not a unigram model"):
        read_sentencepiece(tmp_path / "spiece.model")
