"""Where a text begins and ends for a model that reads it from left to right.

A tokenizer that frames texts (`[CLS] text [SEP]`) has said so itself. GPT-2's puts nothing around them: its one token
for the end of a text, `<|endoftext|>`, also stands before the next. So does the `<sep>` of XLNet, which frames texts at
their end alone: `text <sep> <cls>`, and of two the second comes after a `<sep>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Ends:
    """The symbols before and after a text."""

    start: int  # what the first token of a text is predicted from
    end: int  # what is to be predicted after the last one
    framed: bool  # whether the tokenizer puts both of them there itself

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Ends:
        """Those of a tokenizer; one without any cannot tell where a text ends."""
        frame = tokenizer.frame.single
        end = tokenizer.id_of(tokenizer.special_tokens.get("eos", ""))
        if frame.before.ids and frame.after.ids:
            return cls(frame.before.ids[-1], frame.after.ids[0], framed=True)
        if frame.after.ids:
            return cls(frame.after.ids[0], frame.after.ids[0], framed=False)
        if end is None:
            what = "the tokenizer has no token for the end of a text"
            raise HeedfulError(
                what, remedy="name it in tokenizer_config.json, as eos_token, or use one that frames texts"
            )
        return cls(end, end, framed=False)

    @property
    def before(self) -> tuple[int, ...]:
        """What stands before a text in a stream of many."""
        return (self.start,) if self.framed else ()

    def prompt(self, pieces: list[int]) -> list[int]:
        """The beginning of a text as the model is used to see it; of nothing, the start symbol is left."""
        return [*self.before, *pieces] if pieces else [self.start]

    def whole(self, pieces: list[int]) -> list[int]:
        """A text with both of its ends."""
        return [self.start, *pieces, self.end]
