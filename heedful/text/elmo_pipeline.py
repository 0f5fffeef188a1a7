"""ELMo's way from text to words of characters: every byte is a token, and its kind says where a word begins.

    pieces   <S>  c ##a ##t  . </S>

No word is unknown: whatever is written has its bytes. The first byte of a word and the others have ids of their own, so
that the ids alone tell the words, and a tokenizer.json of the `tokenizers` library says all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from heedful.text.bert_pipeline import add_special_tokens
from heedful.text.ideographs import IDEOGRAPHS
from heedful.text.tokenizer import Tokenizer

SPECIAL_TOKENS: Mapping[str, str] = MappingProxyType(
    {"pad": "[PAD]", "unk": "[UNK]", "cls": "<S>", "sep": "</S>", "mask": "[MASK]"}
)
# The ids: first the special tokens, then the bytes with which a word begins, then those with which it goes on.
BEGIN, END = 2, 3
FIRST_BYTES = len(SPECIAL_TOKENS)
OTHER_BYTES = FIRST_BYTES + 256
PIECES = OTHER_BYTES + 256
# A byte is a token, and a text of some hundred words must fit.
LONGEST = 4096
# As the words of a corpus are split, but each ideograph is a word.
_WORD = rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+(?:['’.-][^\W{IDEOGRAPHS}]+)*|\S"


def character_tokenizer(split_signs: bool = True) -> Tokenizer:
    """The tokenizer; without `split_signs` words stand between spaces, as in text that was taken apart before."""
    letters = _byte_letters()
    vocabulary = {token: number for number, token in enumerate(SPECIAL_TOKENS.values())}
    vocabulary |= {letter: FIRST_BYTES + byte for byte, letter in enumerate(letters)}
    vocabulary |= {f"##{letter}": OTHER_BYTES + byte for byte, letter in enumerate(letters)}
    library = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=10**6))
    word = pre_tokenizers.Split(tokenizers.Regex(_WORD), "removed", invert=True)
    split = word if split_signs else pre_tokenizers.WhitespaceSplit()
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([split, as_bytes])
    library.decoder = decoders.Sequence([decoders.WordPiece(prefix="##", cleanup=False), decoders.ByteLevel()])
    add_special_tokens(library, SPECIAL_TOKENS)
    frame = library.post_processor
    library.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), frame])
    return Tokenizer(library, SPECIAL_TOKENS, LONGEST)


def word_ids(word: str) -> list[int]:
    """The ids of one word as it is written."""
    first, *rest = word.encode("utf-8", errors="replace") or b"?"
    return [FIRST_BYTES + first, *(OTHER_BYTES + byte for byte in rest)]


def spelled_words(ids: Sequence[int]) -> list[str]:
    """The words that tokens spell; one that is no byte is a word by the name it has."""
    special, words = list(SPECIAL_TOKENS.values()), list[bytes]()
    for number in ids:
        if number < FIRST_BYTES:
            words.append(special[number].encode())
        elif number < OTHER_BYTES:
            words.append(bytes([number - FIRST_BYTES]))
        else:
            words[-1:] = [b"".join([*words[-1:], bytes([number - OTHER_BYTES])])]
    return [word.decode("utf-8", errors="replace") for word in words]


def _byte_letters() -> list[str]:
    """The printable character by which the library stands for each byte: its own, or the next unused from U+0100 on."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]
