"""BERT's way from text to pieces, put together from the parts of the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import tokenizers
from tokenizers import decoders, normalizers, pre_tokenizers, processors

SPECIAL_TOKENS: Mapping[str, str] = MappingProxyType(
    {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
)


def wordpiece_tokenizer(
    vocabulary: Mapping[str, int],
    special_tokens: Mapping[str, str] = SPECIAL_TOKENS,
    *,
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer over `vocabulary`; `strip_accents=None` strips them exactly when it lower-cases."""
    unknown = special_tokens["unk"]
    library = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(dict(vocabulary), unk_token=unknown, max_input_chars_per_word=100)
    )
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(prefix="##")
    add_special_tokens(library, special_tokens)
    return library


def add_special_tokens(library: tokenizers.Tokenizer, special_tokens: Mapping[str, str]) -> None:
    """Protect the special tokens from being split and wrap texts as `[CLS] A [SEP] B [SEP]`."""
    ids = library.get_vocab()
    library.add_special_tokens(sorted(set(special_tokens.values()) & ids.keys(), key=ids.__getitem__))
    cls, sep = special_tokens["cls"], special_tokens["sep"]
    library.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(token, ids[token]) for token in (cls, sep)],
    )
