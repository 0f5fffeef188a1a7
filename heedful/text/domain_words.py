"""Words of a field added to a WordPiece vocabulary: at its end, so that no id changes, and as ordinary pieces.

    asked = sort_out(["Fibrosis", "COVID-19", "the"], tokenizer)
    asked.new, asked.known, asked.refused        # ("fibrosis",), ("the",), {2: "COVID-19"}
    wider = with_words(tokenizer, asked.new)
    extends(wider, tokenizer)                    # a model of `tokenizer` can go on with `wider`
    spellings(wider, tokenizer)                  # the old ids of each new word: those of fi ##bro ##sis

Ordinary pieces are found after the text is lower-cased and cut into words, unlike the "added tokens" of Hugging Face,
which are cut out of the raw text. In longer words they serve as the beginning: fibrosis ##es.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tokenizers

from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import count_words


@dataclass(frozen=True)
class SortedOut:
    """Words that somebody wants in a vocabulary, as its tokenizer writes them, each once."""

    new: tuple[str, ...]
    known: tuple[str, ...]  # pieces already
    refused: Mapping[int, str]  # by line: what the tokenizer cuts apart before it looks for pieces, or never reads


def sort_out(lines: Iterable[str], tokenizer: Tokenizer) -> SortedOut:
    """Tell the words, one a line, that can be added from those that are pieces already and those that are no words."""
    library = _wordpiece(tokenizer)
    wanted: dict[str, bool] = {}
    refused: dict[int, str] = {}
    for number, line in enumerate(lines, start=1):
        normal = library.normalizer.normalize_str(line) if library.normalizer else line
        words = [word for word, _ in library.pre_tokenizer.pre_tokenize_str(normal)]
        if len(words) == 1 and len(words[0]) <= library.model.max_input_chars_per_word:
            wanted[words[0]] = tokenizer.id_of(words[0]) is None
        elif line.strip():
            refused[number] = line.strip()
    new, known = (tuple(word for word, is_new in wanted.items() if is_new is kind) for kind in (True, False))
    return SortedOut(new, known, refused)


def split_words(lines: Iterable[str], tokenizer: Tokenizer, count: int, min_count: int) -> dict[str, int]:
    """The `count` most frequent words that are spelled with several pieces, and how often each occurs in the text.

    Numbers are left out. So are ideographs, which BERT takes one by one, and words of which it reads only [UNK].
    """
    library = _wordpiece(tokenizer)
    counts = count_words(lines, library)
    frequent = (word for word, occurs in counts.items() if occurs >= min_count and any(map(str.isalpha, word)))
    ranked = sorted(frequent, key=lambda word: (-counts[word], word))
    split = (word for word in ranked if len(library.model.tokenize(word)) > 1)
    return {word: counts[word] for word in islice(split, count)}


def with_words(tokenizer: Tokenizer, words: Iterable[str]) -> Tokenizer:
    """The same tokenizer with `words`, as `sort_out` and `split_words` give them, as further pieces."""
    settings = json.loads(_wordpiece(tokenizer).to_str())
    new = [word for word in dict.fromkeys(words) if tokenizer.id_of(word) is None]
    # Tokens that were added outside the vocabulary move into it: the library would give them ids after the new words.
    pieces = enumerate([*tokenizer.vocabulary, *new])
    settings["model"]["vocab"] = {piece: number for number, piece in pieces if piece}
    library = tokenizers.Tokenizer.from_str(json.dumps(settings))
    return Tokenizer(library, tokenizer.special_tokens, tokenizer.model_max_length)


def extends(larger: Tokenizer, smaller: Tokenizer) -> bool:
    """Whether one is the other with nothing but more pieces at the end."""
    same_ids = larger.vocabulary[: smaller.vocab_size] == smaller.vocabulary
    return same_ids and _manner(larger) == _manner(smaller)


def spellings(larger: Tokenizer, smaller: Tokenizer) -> list[list[int]]:
    """The ids in `smaller` that stood for each of the pieces which `larger` has at its end."""
    texts = [piece.removeprefix("##") for piece in larger.vocabulary[smaller.vocab_size :]]
    return [encoding.ids or [smaller.unk_id] for encoding in smaller.pieces(texts)]


def _manner(tokenizer: Tokenizer) -> list[Any]:
    """Everything that decides what becomes of a text, but for the vocabulary."""
    settings = json.loads(tokenizer.library.to_str())
    model = {key: value for key, value in settings["model"].items() if key != "vocab"}
    return [settings["normalizer"], settings["pre_tokenizer"], model, tokenizer.special_tokens]


def _wordpiece(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    library = tokenizer.library
    if not isinstance(library.model, tokenizers.models.WordPiece) or library.pre_tokenizer is None:
        raise HeedfulError(
            "words can be added to a WordPiece vocabulary of BERT's kind only",
            remedy="byte-level BPE spells every word: train a new tokenizer on your text instead",
        )
    return library
