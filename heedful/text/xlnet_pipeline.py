"""XLNet's way from text to pieces: a unigram vocabulary, and <sep> <cls> after the text instead of around it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from heedful.errors import HeedfulError
from heedful.json_files import read_json
from heedful.text.sentencepiece_file import SentencePieceModel, read_sentencepiece
from heedful.text.tokenizer import Tokenizer

SPECIAL_TOKENS: Mapping[str, str] = MappingProxyType(
    {"pad": "<pad>", "unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"}
)


def read_spiece(folder: Path) -> Tokenizer | None:
    """The tokenizer of an XLNet folder that has a `spiece.model` and no tokenizer.json; None if it has neither."""
    file = folder / "spiece.model"
    if not file.is_file():
        return None
    model = read_sentencepiece(file)
    missing = [token for token in SPECIAL_TOKENS.values() if token not in {text for text, _ in model.pieces}]
    if missing:
        what = f"the vocabulary has no {', '.join(missing)}, which XLNet needs"
        raise HeedfulError(what, where=file, remedy="give the spiece.model of an XLNet")
    settings: dict[str, Any] = {}
    if (folder / "tokenizer_config.json").is_file():
        settings = read_json(folder / "tokenizer_config.json")
    return Tokenizer(unigram_tokenizer(model, bool(settings.get("do_lower_case"))), SPECIAL_TOKENS)


def unigram_tokenizer(model: SentencePieceModel, lowercase: bool) -> tokenizers.Tokenizer:
    """XLNet's tokenizer over a unigram vocabulary."""
    library = tokenizers.Tokenizer(models.Unigram(model.pieces, unk_id=model.unknown, byte_fallback=False))
    # Quotation marks and accents were made plain before SentencePiece saw a text, and SentencePiece has its own table.
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD()]
    steps += [normalizers.StripAccents(), *([normalizers.Lowercase()] if lowercase else [])]
    if model.replacements:
        steps.append(normalizers.Precompiled(model.replacements))
    library.normalizer = normalizers.Sequence(steps)
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    library.decoder = decoders.Metaspace()
    library.add_special_tokens([token for token in model.special if library.token_to_id(token) is not None])
    library.post_processor = _frame(library, SPECIAL_TOKENS)
    return library


def framed_at_the_end(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer with its own [SEP] and [CLS] after texts, as XLNet reads them."""
    tokenizer.require(("sep", "cls"), "XLNet")
    library = tokenizers.Tokenizer.from_str(tokenizer.library.to_str())
    frame = _frame(library, tokenizer.special_tokens)
    if isinstance(library.pre_tokenizer, pre_tokenizers.Sequence):  # byte-level: places leave out the space before
        frame = processors.Sequence([processors.ByteLevel(trim_offsets=True), frame])
    library.post_processor = frame
    return Tokenizer(library, tokenizer.special_tokens, tokenizer.model_max_length, "last")


def _frame(library: tokenizers.Tokenizer, special_tokens: Mapping[str, str]) -> Any:
    sep, cls = special_tokens["sep"], special_tokens["cls"]
    return processors.TemplateProcessing(
        single=f"$A:0 {sep}:0 {cls}:2",
        pair=f"$A:0 {sep}:0 $B:1 {sep}:1 {cls}:2",
        special_tokens=[(token, library.token_to_id(token)) for token in (sep, cls)],
    )
