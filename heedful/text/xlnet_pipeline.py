"""XLNet's frame around the pieces of any tokenizer: <sep> <cls> after the text instead of around it."""

from __future__ import annotations

import tokenizers
from tokenizers import pre_tokenizers, processors

from heedful.text.sentencepiece_pipeline import frame_at_the_end
from heedful.text.tokenizer import Tokenizer


def framed_at_the_end(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer with its own [SEP] and [CLS] after texts, as XLNet reads them."""
    tokenizer.require(("sep", "cls"), "XLNet")
    library = tokenizers.Tokenizer.from_str(tokenizer.library.to_str())
    frame = frame_at_the_end(library, tokenizer.special_tokens)
    if isinstance(library.pre_tokenizer, pre_tokenizers.Sequence):  # byte-level: places leave out the space before
        frame = processors.Sequence([processors.ByteLevel(trim_offsets=True), frame])
    library.post_processor = frame
    return Tokenizer(library, tokenizer.special_tokens, tokenizer.model_max_length, "last")
