"""The text that follows a prompt, as its tokens come: what is certain of it, and whether a stop string is in it."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.text.tokenizer import Tokenizer

# So many tokens before the text tell how its first one is joined to them.
JOINT = 8
# Bytes that do not yet make a character.
UNFINISHED = "\ufffd"


class Continuation:
    """Tokens after a prompt, and their text up to the first stop string."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], stop: Sequence[str] = ()) -> None:
        self.tokenizer, self.stop = tokenizer, stop
        self.ids: list[int] = []
        self.stopped = False
        self._joint = list(prompt[-JOINT:])
        self._before = tokenizer.decode(self._joint)
        self._told = 0

    def add(self, symbol: int) -> bool:
        """Take one more token; gives whether the text ends with it, at a stop string."""
        self.ids.append(symbol)
        if self.stop:
            # A stop string has at most as many tokens as characters, and some of them may be of what is before it.
            tail = self.tokenizer.decode(self.ids[-max(map(len, self.stop)) - JOINT :])
            self.stopped = any(text in tail for text in self.stop)
        return self.stopped

    @property
    def text(self) -> str:
        """All of it, up to the stop string."""
        whole = self.tokenizer.decode([*self._joint, *self.ids])
        own = whole[len(self._before) :] if whole.startswith(self._before) else self.tokenizer.decode(self.ids)
        places = [place for place in (own.find(text) for text in self.stop) if place >= 0]
        return own[: min(places)] if places else own

    def news(self, last: bool = False) -> str:
        """What has become certain since it was last asked; the `last` time all that is left."""
        text = self.text
        sure = len(text) if last or self.stopped else self._certain(text)
        piece = text[self._told : sure]
        self._told = max(self._told, sure)
        return piece

    def _certain(self, text: str) -> int:
        """How much of a text no later token can change: no half character, nor what may become a stop string."""
        sure = len(text.rstrip(UNFINISHED))
        for stop in self.stop:
            for size in range(min(len(stop) - 1, sure), 0, -1):
                if text[:sure].endswith(stop[:size]):
                    sure -= size
                    break
        return sure
