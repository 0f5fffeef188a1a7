"""Tokenizers from a SentencePiece file alone, against SentencePiece itself and against `transformers`."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import transformers

from heedful.checkpoints.bert_relatives import ALBERT
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.roberta_family import XLM_ROBERTA
from heedful.checkpoints.xlnet_family import XLNET
from heedful.errors import HeedfulError
from heedful.inference.load import load
from heedful.text.sentencepiece_file import read_sentencepiece
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train
from heedful.text.xlnet_pipeline import framed_at_the_end

LINES = [
    "The quick brown fox jumps over the lazy dog, and then it sleeps.",
    "A dog and a fox are not the same, although both have 4 legs, and 1999, 300, 1999, 4, 1999, years, 1999, 300, 4,",
    'She said: "never jump over sleeping dogs (or foxes) again!"',
    "北京是中国的首都，人口超过2000万。她说：不要再跳过睡着的狗了！",
] * 5
TEXTS = [
    *LINES[:4],
    "  foxes   sleep ",
    "ﬁve ½ naïve Łódź",
    "a(b)-c.d 中国 zebra ☃☃ ☃",
    "",
    "狗\u3000fox\tdog",
    "in 1999, 4,",
]
GOOGLE = [".", "(", ")", '"', "-"]  # pieces that XLNet and ALBERT asked SentencePiece for
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "xlnet": (
        "spiece",
        {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], "user_defined_symbols": ["<eop>", *GOOGLE]}
        | {"split_by_unicode_script": False, "split_by_number": False},
    ),
    "albert": (
        "spiece",
        {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
        | {"user_defined_symbols": GOOGLE, "split_by_unicode_script": False, "split_by_number": False},
    ),
    "xlm-roberta": ("sentencepiece.bpe", {}),
}


def train_model(folder: Path, name: str, kind: str = "unigram", **options: Any) -> None:
    (folder / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines.txt"), model_prefix=str(folder / name), vocab_size=140, model_type=kind,
        minloglevel=2, hard_vocab_limit=False, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    for kind, folder in found.items():
        train_model(folder, KINDS[kind][0], **KINDS[kind][1])
    return found


def before_sentencepiece(kind: str, text: str) -> str:
    """What Google's own code made of a text before SentencePiece saw it."""
    if kind == "xlm-roberta":
        return text
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return plain.lower() if kind == "albert" else plain


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_those_of_sentencepiece(folders: dict[str, Path], kind: str) -> None:
    name = f"{KINDS[kind][0]}.model"
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(folders[kind] / name))
    ours = Tokenizer.load(folders[kind])
    for text in TEXTS:
        expected = theirs.encode(before_sentencepiece(kind, text))
        if kind == "xlm-roberta":  # fairseq's order: <s> <pad> </s> <unk>, then what follows SentencePiece's three
            expected = [3 if number == 0 else number + 1 for number in expected]
        elif "," in text and any(c.isdigit() for c in text):
            continue  # there Google's code goes its own way, below
        assert ours.pieces([text])[0].ids == expected, text
    assert ours.decode(ours.encode("a fox (or dog).").ids) == "a fox (or dog)."


def test_a_comma_after_a_number_is_a_piece_of_its_own(folders: dict[str, Path]) -> None:
    for kind in ("xlnet", "albert"):
        ours = Tokenizer.load(folders[kind])
        assert any(piece[-1:] == "," and piece[-2:-1].isdigit() for piece in ours.vocabulary)  # it could be one
        assert all(piece == "," for piece in ours.pieces([LINES[1]])[0].tokens if piece.endswith(","))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_and_pairs_are_framed_as_by_transformers(folders: dict[str, Path], kind: str) -> None:
    kinds = {"xlnet": "XLNetTokenizer", "albert": "AlbertTokenizer", "xlm-roberta": "XLMRobertaTokenizer"}
    theirs = getattr(transformers, kinds[kind]).from_pretrained(folders[kind])
    ours = Tokenizer.load(folders[kind])
    for text in ("the quick fox", "ﬁve ½ naïve Łódź", "", f"dog {theirs.mask_token} fox", "北京的狗", "``quick''"):
        expected, found = theirs(text, LINES[0][:-1], return_token_type_ids=True), ours.encode(text, LINES[0][:-1])
        assert found.ids == expected["input_ids"], text
        if kind == "xlnet":  # ALBERT's class of version 5 says no segments
            assert found.type_ids == expected["token_type_ids"]
    assert theirs.convert_tokens_to_ids(list(ours.special_tokens.values())) == [
        ours.id_of(token) for token in ours.special_tokens.values()
    ]


@pytest.mark.parametrize("family", [XLNET, ALBERT, XLM_ROBERTA], ids=lambda family: family.model_type)
def test_a_folder_needs_no_more_and_is_written_with_a_tokenizer_json(
    folders: dict[str, Path], family: Any, tmp_path: Path
) -> None:
    ours = Tokenizer.load(folders[family.model_type])
    ours.save(tmp_path)
    theirs, again = transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.load(tmp_path)
    assert again.special_tokens == ours.special_tokens
    (tmp_path / "bare").mkdir()
    (tmp_path / "tokenizer.json").rename(tmp_path / "bare" / "tokenizer.json")
    alone = Tokenizer.load(tmp_path / "bare")  # as published folders are: no word of which token is which
    for text in TEXTS:
        assert ours.encode(text).ids == again.encode(text).ids == alone.encode(text).ids == theirs(text)["input_ids"]
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    small |= {"d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 8, "embedding_size": 8, "pad_token_id": 1}
    config = transformers.AutoConfig.for_model(family.model_type, vocab_size=ours.vocab_size, **small)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "model")
    name = f"{KINDS[family.model_type][0]}.model"
    (tmp_path / "model" / name).write_bytes((folders[family.model_type] / name).read_bytes())
    family.check_frame(read_folder(tmp_path / "model").require_tokenizer(), tmp_path)
    assert load(tmp_path / "model").embed(TEXTS).shape == (len(TEXTS), 8)  # type: ignore[union-attr]


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


def test_bad_files_are_refused_by_name(folders: dict[str, Path], tmp_path: Path) -> None:
    data = (folders["albert"] / "spiece.model").read_bytes()
    (tmp_path / "spiece.model").write_bytes(data[:-7])
    with pytest.raises(HeedfulError, match=r"not a SentencePiece model(.|\n)*spiece\.model(.|\n)*tokenizer\.json"):
        Tokenizer.load(tmp_path)
    train_model(tmp_path, "spiece", "bpe")
    with pytest.raises(HeedfulError, match="not a unigram model"):
        read_sentencepiece(tmp_path / "spiece.model")
    train_model(tmp_path, "spiece", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)  # as T5 has it
    with pytest.raises(HeedfulError, match=r"neither XLNet's(.|\n)*spiece\.model"):
        Tokenizer.load(tmp_path)
