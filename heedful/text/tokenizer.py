"""The tokenizer of a model folder: text to pieces, with ids, word numbers and character offsets.

    tokenizer = Tokenizer.load("folder")
    encoding = tokenizer.encode("unaffable", pair="你好", max_length=128)
    encoding.tokens, encoding.ids, encoding.offsets, encoding.word_ids, encoding.type_ids

What comes back is the `Encoding` of the `tokenizers` library; offsets count code points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path

import tokenizers
from tokenizers import Encoding, processors

from heedful.errors import HeedfulError
from heedful.text import tokenizer_folder
from heedful.text.bert_pipeline import SPECIAL_TOKENS
from heedful.text.frame import Frame, SummaryRow

# Past this many characters for each token that may stay, a side of a pair is shortened before it is encoded with the
# other: the library builds every combination of the cut-off parts of the two sides.
LONG_SIDE = 16


class Tokenizer:
    """A thin, typed and thread-safe face of `tokenizers.Tokenizer`."""

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        special_tokens: Mapping[str, str] = SPECIAL_TOKENS,
        model_max_length: int | None = None,
        summary: SummaryRow = "first",
    ) -> None:
        """`summary` is the row that sums a text up for the model that this tokenizer belongs to."""
        library.no_truncation()
        library.no_padding()
        self.library = library
        self.special_tokens = dict(special_tokens)
        self.model_max_length = model_max_length
        self.summary: SummaryRow = summary
        self._cutting = lru_cache(maxsize=8)(partial(_cutting_copy, library))

    @classmethod
    def load(cls, path: str | Path, lowercase: bool | None = None) -> Tokenizer:
        """Read the `tokenizer.json` or `vocab.txt` of a folder, or such a file.

        `lowercase` overrides what it says; a tokenizer that does not normalise as BERT does keeps its own way.
        """
        return cls(*tokenizer_folder.read(Path(path), lowercase))

    def save(self, folder: str | Path) -> None:
        """Write the files from which this tokenizer is loaded again, here and by Hugging Face's AutoTokenizer."""
        tokenizer_folder.write(Path(folder), self.library, self.special_tokens, self.model_max_length)

    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Encoding:
        """`[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`, cut to `max_length` (`was_truncated` tells)."""
        return self.encode_batch([text] if pair is None else [(text, pair)], max_length)[0]

    def encode_batch(
        self,
        texts: Sequence[str] | Sequence[tuple[str, str]],
        max_length: int | None = None,
        *,
        offsets: bool = True,
    ) -> list[Encoding]:
        """Encode texts or pairs in parallel; faster without `offsets`, but then places and word numbers are missing.

        What is too long keeps its left part; of a pair, the longer side is cut first.
        """
        library = self.library
        inputs: list[str | tuple[str, str]] = list(texts)
        if max_length is not None and inputs:
            library = self._cutting_at(max_length, pairs=not isinstance(inputs[0], str))
        try:
            if max_length is not None:
                inputs = [self._shorten(one, max_length) for one in inputs]
            return library.encode_batch(inputs) if offsets else library.encode_batch_fast(inputs)
        except TypeError:
            raise _bad_input(inputs) from None

    def pieces(self, texts: Sequence[str]) -> list[Encoding]:
        """The pieces of texts, all of them and no special tokens."""
        try:
            return self.library.encode_batch(list(texts), add_special_tokens=False)
        except TypeError:
            raise _bad_input(texts) from None

    def unknown_words(self, texts: Sequence[str]) -> list[str]:
        """What of texts the vocabulary cannot spell, each once and in order."""
        unknown = self.id_of(self.special_tokens.get("unk", ""))
        found = [
            text[slice(*place)]
            for text, encoding in zip(texts, self.pieces(texts), strict=True)
            for number, place in zip(encoding.ids, encoding.offsets, strict=True)
            if number == unknown
        ]
        return list(dict.fromkeys(found))

    def encode_words(self, sentences: Sequence[Sequence[str]]) -> list[Encoding]:
        """The pieces of sentences that come as words, no special tokens; `word_ids` count the words given.

        A word of nothing but spaces or control characters has no piece.
        """
        inputs = [list(words) for words in sentences]  # the library takes a tuple of two for a pair
        try:
            return self._for_words.encode_batch(inputs, is_pretokenized=True, add_special_tokens=False)
        except TypeError:
            raise _bad_input([word for words in inputs for word in words], "word") from None

    @cached_property
    def _for_words(self) -> tokenizers.Tokenizer:
        """The library's object for words that come one by one; to plain byte-level BPE each has a space before it."""
        spelled = json.loads(self.library.to_str())
        splitter = spelled["pre_tokenizer"] or {}
        if splitter.get("type") != "ByteLevel" or splitter["add_prefix_space"]:
            return self.library
        splitter["add_prefix_space"] = True
        return tokenizers.Tokenizer.from_str(json.dumps(spelled))

    def summed_up_by(self, summary: SummaryRow) -> Tokenizer:
        """The same tokenizer for a model in which the first or the last row sums a text up."""
        return Tokenizer(self.library, self.special_tokens, self.model_max_length, summary)

    def without_frame(self) -> Tokenizer:
        """The same tokenizer, which puts nothing around texts."""
        library = tokenizers.Tokenizer.from_str(self.library.to_str())
        library.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1")
        return Tokenizer(library, self.special_tokens, self.model_max_length, self.summary)

    @cached_property
    def frame(self) -> Frame:
        """What this tokenizer puts around texts, such as `[CLS] first [SEP] second [SEP]`."""
        named = (self.special_tokens.get(name, "") for name in ("bos", "eos", "unk"))
        nothing = next((number for piece in named if (number := self.id_of(piece)) is not None), 0)
        return Frame.of(self.library, self.summary, nothing)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens left out."""
        text: str = self.library.decode(list(ids))
        return text

    def id_of(self, piece: str) -> int | None:
        """The id of a piece of the vocabulary, None for one that is not in it."""
        found: int | None = self.library.token_to_id(piece)
        return found

    @cached_property
    def vocabulary(self) -> list[str]:
        """The pieces in the order of their ids; an id without a piece has an empty one."""
        by_piece: dict[str, int] = self.library.get_vocab(with_added_tokens=True)
        pieces = [""] * (max(by_piece.values(), default=-1) + 1)
        for piece, number in by_piece.items():
            pieces[number] = piece
        return pieces

    @property
    def vocab_size(self) -> int:
        """How many rows an embedding matrix needs: the highest id + 1."""
        return len(self.vocabulary)

    @cached_property
    def pad_id(self) -> int:
        """The id of the padding token."""
        return self._special_id("pad")

    @cached_property
    def unk_id(self) -> int:
        """The id of the token for what the vocabulary cannot spell."""
        return self._special_id("unk")

    @cached_property
    def cls_id(self) -> int:
        """The id of the token before every text."""
        return self._special_id("cls")

    @cached_property
    def sep_id(self) -> int:
        """The id of the token after each side."""
        return self._special_id("sep")

    @cached_property
    def mask_id(self) -> int:
        """The id of the token that stands for a hidden one."""
        return self._special_id("mask")

    def require(self, roles: Sequence[str], purpose: str, where: object = None) -> None:
        """Refuse to go on without the special tokens of these roles, which `purpose` needs."""
        missing = [role for role in roles if self.id_of(self.special_tokens.get(role, "")) is None]
        if missing:
            names = ", ".join(self.special_tokens.get(role, role) for role in missing)
            remedy = "train one with `heedful tokenizer train`, or use BERT's"
            raise HeedfulError(f"the tokenizer has no {names}, which {purpose} needs", where=where, remedy=remedy)

    def _special_id(self, role: str) -> int:
        token = self.special_tokens.get(role)
        found = None if token is None else self.id_of(token)
        if found is None:
            raise HeedfulError(f"this tokenizer has no {role} token", remedy="use one whose vocabulary holds it")
        return found

    def _cutting_at(self, max_length: int, pairs: bool) -> tokenizers.Tokenizer:
        least = self.library.num_special_tokens_to_add(is_pair=pairs) + 1
        if max_length < least:
            raise HeedfulError(
                f"max_length {max_length} leaves no room for text", remedy=f"use at least {least} tokens"
            )
        return self._cutting(max_length)

    def _shorten(self, text: str | tuple[str, str], max_length: int) -> str | tuple[str, str]:
        if isinstance(text, str):
            return text
        first, second = (self._left_part(side, max_length) for side in text)
        return first, second

    def _left_part(self, text: str, max_length: int) -> str:
        if len(text) <= LONG_SIDE * max_length:
            return text
        whole = self.library.encode(text, add_special_tokens=False)
        if len(whole) <= 2 * max_length:
            return text
        # Words are split into pieces one by one, so a text cut after a word keeps its pieces up to there.
        word = whole.word_ids[2 * max_length]
        span = None if word is None else whole.word_to_chars(word)
        return text[: span[1]] if span else text


def was_truncated(encoding: Encoding) -> bool:
    """Whether `max_length` has cut something off this text or pair."""
    return bool(encoding.overflowing)


def _cutting_copy(library: tokenizers.Tokenizer, max_length: int) -> tokenizers.Tokenizer:
    # Truncation is a setting of the library's object, so each length has its own copy, never changed again:
    # threads with different lengths cannot disturb one another.
    copy = tokenizers.Tokenizer.from_str(library.to_str())
    copy.enable_truncation(max_length, strategy="longest_first", direction="right")
    return copy


def _bad_input(inputs: Sequence[object], kind: str = "text") -> HeedfulError:
    for number, one in enumerate(inputs, start=1):
        sides = one if isinstance(one, tuple | list) and len(one) == 2 else (one,)
        for side in sides:
            if not isinstance(side, str):
                what = f"{kind} number {number} of this batch is of type {type(side).__name__}"
                return HeedfulError(what, remedy="give strings, or pairs of strings")
            if any("\ud800" <= character <= "\udfff" for character in side):
                what = f"{kind} number {number} of this batch holds half a surrogate pair"
                return HeedfulError(what, remedy="decode the text from UTF-8 without surrogateescape")
    return HeedfulError("the texts cannot be encoded", remedy="give strings, or pairs of strings")
