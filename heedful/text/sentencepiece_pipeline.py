"""From a SentencePiece file to pieces, as the models that come with one have them: XLNet, ALBERT and XLM-R.

SentencePiece itself knows nothing of [CLS] or <mask>. What a model puts around its texts, what it does to them before
and where its special tokens lie was decided by its own code; the pieces of the vocabulary tell which model that is.

Pieces that users of SentencePiece defined, such as ALBERT's "(", are pieces like the others here: they stand in the
vocabulary with the highest score, so that they are always found. Protected as special tokens are, as `transformers` 5
does with a bare spiece.model, they would cut words apart and lose the space before them. What comes out is what
SentencePiece says but for two rarities, which the files of Hugging Face share: U+0085 is a space, and an accent that
stands alone after a character which the table of replacements changes is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from heedful.errors import HeedfulError
from heedful.text.bert_pipeline import SPECIAL_TOKENS as BERT_TOKENS
from heedful.text.bert_pipeline import add_special_tokens
from heedful.text.sentencepiece_file import SentencePieceModel, read_sentencepiece

FILES = ("sentencepiece.bpe.model", "spiece.model")
XLNET_TOKENS: Mapping[str, str] = MappingProxyType(
    {"pad": "<pad>", "unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"}
)
ALBERT_TOKENS: Mapping[str, str] = MappingProxyType({**BERT_TOKENS, "pad": "<pad>", "unk": "<unk>"})
XLM_R_TOKENS: Mapping[str, str] = MappingProxyType({**XLNET_TOKENS, "cls": "<s>", "sep": "</s>"})

# What XLNet and ALBERT take off the log-probability of pieces such as "9,": their own code cuts such a piece in two.
NUMBER_COMMA = 100.0


def sentencepiece_tokenizer(file: Path, settings: Mapping[str, Any]) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """The tokenizer over a SentencePiece file, and its special tokens by role.

    `settings` are those of a tokenizer_config.json; do_lower_case and keep_accents are for XLNet and ALBERT.
    """
    model = read_sentencepiece(file)
    known = {text for text, _ in model.pieces}
    if known.issuperset(XLNET_TOKENS.values()):
        library = _after_google(model, settings, lowercase=False)
        _protect(library, model.special, XLNET_TOKENS)
        library.post_processor = frame_at_the_end(library, XLNET_TOKENS)
        return library, dict(XLNET_TOKENS)
    if known.issuperset(ALBERT_TOKENS.values()):
        library = _after_google(model, settings, lowercase=True)
        add_special_tokens(library, ALBERT_TOKENS)
        _protect(library, model.special, ALBERT_TOKENS)
        return library, dict(ALBERT_TOKENS)
    if [text for text, _ in model.pieces[:3]] == ["<unk>", "<s>", "</s>"]:
        return _xlm_r(model), dict(XLM_R_TOKENS)
    what = "the vocabulary has neither XLNet's <cls> and <sep>, nor ALBERT's [CLS] and [SEP], nor XLM-R's first pieces"
    raise HeedfulError(what, where=file, remedy="give the model's tokenizer.json")


def frame_at_the_end(library: tokenizers.Tokenizer, special_tokens: Mapping[str, str]) -> Any:
    """XLNet's frame, `text <sep> <cls>`."""
    sep, cls = special_tokens["sep"], special_tokens["cls"]
    return processors.TemplateProcessing(
        single=f"$A:0 {sep}:0 {cls}:2",
        pair=f"$A:0 {sep}:0 $B:1 {sep}:1 {cls}:2",
        special_tokens=[(token, library.token_to_id(token)) for token in (sep, cls)],
    )


def _after_google(model: SentencePieceModel, settings: Mapping[str, Any], lowercase: bool) -> tokenizers.Tokenizer:
    """The tokenizer that XLNet and ALBERT share: quotation marks and accents are made plain before SentencePiece."""
    steps: list[Any] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not settings.get("keep_accents"):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.get("do_lower_case", lowercase):
        steps.append(normalizers.Lowercase())
    pieces = [(text, score - NUMBER_COMMA if _number_comma(text) else score) for text, score in model.pieces]
    return _unigram(pieces, model.unknown, model.replacements, steps)


def _number_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _xlm_r(model: SentencePieceModel) -> tokenizers.Tokenizer:
    """XLM-R's ids are fairseq's: four special tokens, then SentencePiece's from the fourth piece on, the mask last."""
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    library = _unigram([*first, *model.pieces[3:], ("<mask>", 0.0)], 3, model.replacements, [])
    _protect(library, (), XLM_R_TOKENS)
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return library


def _unigram(
    pieces: list[tuple[str, float]], unknown: int, replacements: bytes, before: list[Any]
) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    steps = [*before, *([normalizers.Precompiled(replacements)] if replacements else [])]
    library.normalizer = normalizers.Sequence(steps)
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    library.decoder = decoders.Metaspace()
    return library


def _protect(library: tokenizers.Tokenizer, others: tuple[str, ...], special_tokens: Mapping[str, str]) -> None:
    """Keep special tokens from being cut; the mask takes the space before it, as in Hugging Face's files."""
    ids = library.get_vocab()
    names = sorted({*others, *special_tokens.values()}, key=ids.__getitem__)
    mask = special_tokens["mask"]
    library.add_special_tokens([AddedToken(name, lstrip=name == mask, normalized=False) for name in names])
