"""Words as BERT's tokenizer sees them before it looks for pieces: between spaces, signs and ideographs apart."""

from __future__ import annotations

from tokenizers import Regex, pre_tokenizers

from heedful.errors import HeedfulError
from heedful.text.ideographs import IDEOGRAPHS

_SPLITTER = pre_tokenizers.Sequence(
    [pre_tokenizers.Split(Regex(f"[{IDEOGRAPHS}]"), behavior="isolated"), pre_tokenizers.BertPreTokenizer()]
)


def bert_words(text: str) -> list[tuple[int, int]]:
    """Start and end of each word, in code points."""
    try:
        return [span for _, span in _SPLITTER.pre_tokenize_str(text)]
    except (TypeError, UnicodeEncodeError):  # no text at all, or half a surrogate pair
        raise HeedfulError("this is not a whole text", remedy="give a string that can be written as UTF-8") from None
