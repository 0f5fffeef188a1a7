"""Training a vocabulary on one's own text: the same text gives the same bytes, whatever the order of its lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from operator import add
from typing import Literal

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from heedful.errors import HeedfulError
from heedful.text.bert_pipeline import SPECIAL_TOKENS, add_special_tokens, wordpiece_tokenizer
from heedful.text.ideographs import IDEOGRAPHS
from heedful.text.merges import learn_merges
from heedful.text.tokenizer import Tokenizer

Kind = Literal["wordpiece", "bpe"]
KINDS: tuple[Kind, ...] = ("wordpiece", "bpe")

LONGEST_WORD = 100
# What the text is cut into before the library sees it, each distinct chunk once: around the common ideographs and
# before white space, where the library cuts too. Not before the control characters that Python counts as white space:
# BERT drops them, and what they part grows together. (Byte-level BPE without case may count another run of spaces where
# a combining mark stands alone between them: it drops the mark.)
_APART = "\u3400-\u4dbf\u4e00-\u9fff"
_CHUNK = re.compile(rf"[{_APART}]|\s*[^\s{_APART}]+(?:[\x0b\x0c\x1c-\x1f\x85]\s*[^\s{_APART}]*)*|\s+")
_CHUNKS_IN_MEMORY = 500_000


def train(
    lines: Iterable[str],
    kind: Kind,
    vocab_size: int,
    *,
    cased: bool = False,
    alphabet_size: int | None = None,
    on_piece: Callable[[int], None] = lambda _: None,
) -> Tokenizer:
    """Learn a vocabulary of at most `vocab_size` pieces from lines of text; `on_piece` hears how many there are.

    WordPiece keeps the `alphabet_size` most frequent characters (see `alphabet_of`) and makes words with others
    `[UNK]`, so that thousands of ideographs leave room for words. BPE works on bytes and spells every character.
    """
    if kind == "wordpiece":
        return _train_wordpiece(lines, vocab_size, cased, alphabet_size, on_piece)
    return _train_bpe(lines, vocab_size, cased, on_piece)


def count_words(lines: Iterable[str], library: tokenizers.Tokenizer) -> Counter[str]:
    """How often each word occurs, as `library` normalises and splits the text; memory grows with the distinct words."""
    words: Counter[str] = Counter()
    chunks: Counter[str] = Counter()
    for line in lines:
        chunks.update(_CHUNK.findall(line))
        if len(chunks) > _CHUNKS_IN_MEMORY:
            _split_chunks(chunks, library, words)
            chunks.clear()
    _split_chunks(chunks, library, words)
    return words


def _split_chunks(chunks: Mapping[str, int], library: tokenizers.Tokenizer, words: Counter[str]) -> None:
    normalizer, pre_tokenizer = library.normalizer, library.pre_tokenizer
    for chunk, count in chunks.items():
        normal = normalizer.normalize_str(chunk) if normalizer else chunk
        for word, _ in pre_tokenizer.pre_tokenize_str(normal):
            if len(word) <= LONGEST_WORD:
                words[word] += count


def _train_wordpiece(
    lines: Iterable[str], vocab_size: int, cased: bool, alphabet_size: int | None, on_piece: Callable[[int], None]
) -> Tokenizer:
    specials = list(SPECIAL_TOKENS.values())
    untrained = wordpiece_tokenizer({token: i for i, token in enumerate(specials)}, lowercase=not cased)
    words = _some(count_words(lines, untrained))
    alphabet = alphabet_of(words, vocab_size, alphabet_size)
    spelled = {word: _spell(word) for word in words if alphabet.issuperset(word)}
    letters = sorted({letter for spelling in spelled.values() for letter in spelling} | alphabet, key=_plain_first)
    _check_room(vocab_size, len(specials) + len(letters))
    index = {letter: i for i, letter in enumerate(letters)}
    counted = (([index[letter] for letter in spelling], words[word]) for word, spelling in spelled.items())
    pieces, _ = learn_merges(counted, letters, vocab_size - len(specials), glue=_glue, on_piece=on_piece)
    vocabulary = {piece: i for i, piece in enumerate(specials + pieces)}
    return Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=not cased))


def _train_bpe(lines: Iterable[str], vocab_size: int, cased: bool, on_piece: Callable[[int], None]) -> Tokenizer:
    specials = list(SPECIAL_TOKENS.values())
    words = _some(count_words(lines, _byte_level_tokenizer({}, [], cased)))
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    _check_room(vocab_size, len(specials) + len(letters))
    index = {letter: i for i, letter in enumerate(letters)}
    counted = (([index[letter] for letter in word], count) for word, count in words.items())
    pieces, merges = learn_merges(counted, letters, vocab_size - len(specials), glue=add, on_piece=on_piece)
    library = _byte_level_tokenizer({piece: i for i, piece in enumerate(specials + pieces)}, merges, cased)
    add_special_tokens(library, SPECIAL_TOKENS)
    # The space before a word belongs to its first piece, but not to its place in the text.
    trim = processors.ByteLevel(trim_offsets=True)
    library.post_processor = processors.Sequence([trim, library.post_processor])
    return Tokenizer(library)


def alphabet_of(words: Mapping[str, int], vocab_size: int, limit: int | None = None) -> frozenset[str]:
    """The `limit` most frequent characters; of equally frequent ones the lower code points.

    Without a limit: as many as make up 99.99 % of the text, but at least a quarter and at most two thirds of the
    vocabulary.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    if limit is None:
        covered = accumulate(counts[character] for character in ranked)
        needed = bisect_left(list(covered), 0.9999 * counts.total()) + 1
        limit = max(vocab_size // 4, min(needed, vocab_size * 2 // 3))
    return frozenset(ranked[:limit])


def _spell(word: str) -> list[str]:
    return [word[0], *("##" + character for character in word[1:])]


def _glue(left: str, right: str) -> str:
    return left + right.removeprefix("##")


def _plain_first(letter: str) -> tuple[bool, str]:
    return len(letter) > 1, letter


def _byte_level_tokenizer(
    vocabulary: dict[str, int], merges: list[tuple[str, str]], cased: bool
) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    if not cased:
        bare = normalizers.BertNormalizer(
            clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=True
        )
        # Stripping accents takes Hangul syllables apart; NFC puts them together again.
        library.normalizer = normalizers.Sequence([bare, normalizers.NFC()])
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(f"[{IDEOGRAPHS}]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    library.decoder = decoders.ByteLevel()
    return library


def _some(words: Counter[str]) -> Counter[str]:
    if not words:
        raise HeedfulError("no words to learn from", remedy="give files that hold text")
    return words


def _check_room(vocab_size: int, needed: int) -> None:
    if vocab_size < needed:
        raise HeedfulError(
            f"a vocabulary of {vocab_size} has no room for its {needed} special tokens and single characters",
            remedy=f"ask for more than {needed} pieces",
        )
