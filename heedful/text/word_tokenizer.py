"""A tokenizer whose pieces are whole words, in the one file that the `tokenizers` library reads.

Words are cut as `heedful.text.words` does. Of ideographs the longest word of the vocabulary is taken, from left to
right, so that nobody needs a segmenter to read what was cut by one. A word that is not in the vocabulary is [UNK], and
nothing stands around a text.
"""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers

from heedful.text.ideographs import IDEOGRAPHS
from heedful.text.tokenizer import Tokenizer
from heedful.text.words import needs_segmenter

# As in heedful.text.words; what Python calls \w is here letters, numbers and _.
_LETTER = rf"[\p{{L}}\p{{N}}_&&[^{IDEOGRAPHS}]]"
_WORD = rf"[{IDEOGRAPHS}]|{_LETTER}+(?:['’.-]{_LETTER}+)*|\S"


UNKNOWN = "[UNK]"


def word_tokenizer(vocabulary: Sequence[str], lowercase: bool) -> Tokenizer:
    """The tokenizer of these words, which have their places as ids; [UNK] is one of them."""
    ids = {word: number for number, word in enumerate(vocabulary)}
    library = tokenizers.Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    library.normalizer = normalizers.Lowercase() if lowercase else None
    library.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)
    library.add_special_tokens([UNKNOWN])
    library.add_tokens([AddedToken(word, normalized=True) for word in vocabulary if needs_segmenter(word)])
    return Tokenizer(library)
