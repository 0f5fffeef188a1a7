"""Texts that go on from prompts: `heedful.load(folder).generate(prompts)`, by the one search of `heedful.decoding`.

Prompts are read in chunks, sorted by length and decoded together; a text ends with the model's end symbol, before a
stop string, after `max_tokens`, or when the model has no room left. Then it stops, or with `when_full="slide"` it goes
on from the newer half of what it has.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from heedful.data.batching import flat_batch
from heedful.data.chance import hashed
from heedful.decoding import Beam, Hypothesis, Sampling, banned_symbols, beam_search, chooser, walk
from heedful.errors import HeedfulError
from heedful.inference.continuation import Continuation
from heedful.inference.repetition import penalised, recalling
from heedful.models.language_model import LanguageModel
from heedful.text.ends import Ends
from heedful.text.tokenizer import Tokenizer

PROMPTS_AT_ONCE = 32
GREEDY = Beam(size=1)
Reason = Literal["end", "stop", "length", "full"]


@dataclass(frozen=True)
class Generated:
    """How a prompt was gone on with."""

    prompt: str
    text: str  # what comes after the prompt
    reason: Reason  # why it ends: the end symbol, a stop string, `max_tokens`, or no room left in the model
    tokens: int
    log_probability: float


@dataclass(frozen=True)
class Writing:
    """How to write."""

    how: Beam | Sampling = GREEDY
    max_tokens: int = 100
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0
    when_full: Literal["stop", "slide"] = "stop"

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise HeedfulError(f"`max_tokens` is {self.max_tokens}", remedy="ask for at least 1")
        if not self.repetition_penalty > 0:
            what = f"`repetition_penalty` is {self.repetition_penalty:g}"
            raise HeedfulError(what, remedy="use 1 for none, or more")
        if any(not text for text in self.stop):
            raise HeedfulError("a stop string is empty", remedy="leave it out")
        if self.when_full == "slide" and self.searches:
            raise HeedfulError("a beam does not slide", remedy="use greedy search or sampling, or stop when it is full")

    @property
    def searches(self) -> bool:
        """Whether several hypotheses are compared, so that nothing is certain before the end."""
        return isinstance(self.how, Beam) and self.how.size > 1

    @property
    def samples(self) -> int:
        """How many texts come of a prompt."""
        return self.how.count if isinstance(self.how, Sampling) else self.how.n_best


def writing_of(
    beam: int = 1,
    length_penalty: float = 1.0,
    n_best: int = 1,
    sample: bool = False,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    count: int = 1,
    **rest: Any,
) -> Writing:
    """How to write, in plain words: greedily, by a `beam`, or with `sample` at random; `rest` as in `Writing`."""
    drawn = {"temperature": temperature != 1, "top_k": top_k != 0, "top_p": top_p != 1, "count": count != 1}
    idle = [name for name, given in drawn.items() if given and not sample]
    searched = {"beam": beam != 1, "length_penalty": length_penalty != 1, "n_best": n_best != 1}
    idle += [name for name, given in searched.items() if given and sample]
    if idle:
        remedy = "leave `sample` out" if sample else "add `sample`"
        raise HeedfulError(
            f"`{idle[0]}` has no effect {'when texts are drawn' if sample else 'on a search'}", remedy=remedy
        )
    if isinstance(stop := rest.get("stop"), str):
        rest["stop"] = (stop,)
    how = Sampling(temperature, top_k, top_p, count) if sample else Beam(beam, length_penalty, n_best)
    return Writing(how, **rest)


@dataclass
class _Text:
    """A text that is being written."""

    prompt: list[int]  # that the model reads first in this round
    said: Continuation
    log_probability: float = 0.0
    reason: Reason | None = None


class TextGenerator:
    """A language model with its tokenizer, ready to go on from prompts."""

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, device: str, where: object = None) -> None:
        self.model, self.tokenizer, self.device, self.where = model.eval(), tokenizer, device, where
        self.ends = Ends.of(tokenizer)
        specials = {tokenizer.id_of(token) for token in tokenizer.special_tokens.values()} - {None, self.ends.end}
        rows = model.encoder.config.vocab_size
        self._banned = sorted(number for number in specials if number is not None)
        self._banned += range(tokenizer.vocab_size, rows)  # rows that are no piece

    def generate(self, prompts: Sequence[str], writing: Writing | None = None) -> list[list[Generated]]:
        """How each prompt goes on: one text, the `n_best` of a beam, or `count` samples."""
        return list(self.stream(prompts, writing))

    def stream(self, prompts: Sequence[str | None], writing: Writing | None = None) -> Iterator[list[Generated]]:
        """As `generate`, in the order of the prompts, so many at once; None begins a text from nothing."""
        asked = writing or Writing()
        for first in range(0, len(prompts), PROMPTS_AT_ONCE):
            some = prompts[first : first + PROMPTS_AT_ONCE]
            ids = [self.prompt_ids(prompt, asked, first + number) for number, prompt in enumerate(some)]
            written = self._searched(ids, asked) if asked.searches else self._written(ids, asked, first)
            for prompt, texts in zip(some, written, strict=True):
                yield [replace(text, prompt=prompt or "") for text in texts]

    def pieces(self, prompt: str | None, writing: Writing | None = None) -> Generator[str, None, Reason]:
        """What comes after a prompt, piece by piece as it is written, greedily or drawn; at last why it ends."""
        asked = writing or Writing()
        if asked.searches:
            raise HeedfulError("a beam is certain of nothing before the end", remedy="use greedy search or sampling")
        ids = self.prompt_ids(prompt, asked)
        text = _Text(ids, Continuation(self.tokenizer, ids, asked.stop))
        rng = self._chance(asked, 0)
        while text.reason is None:
            for _ in self._round([text], asked, rng):
                yield text.said.news()
        yield text.said.news(last=True)
        return text.reason

    def prompt_ids(self, prompt: str | None, asked: Writing, number: int = 0) -> list[int]:
        """The tokens of a prompt, as many as the model has room for."""
        if prompt is not None and not prompt.strip():
            remedy = "write how the text begins, or give no prompt at all to begin from nothing"
            raise HeedfulError(f"prompt number {number + 1} is empty", where=self.where, remedy=remedy)
        ids = self.ends.prompt([] if prompt is None else self.tokenizer.pieces([prompt])[0].ids)
        limit = self.model.encoder.max_length
        if limit is None or len(ids) <= limit:
            return ids
        if asked.when_full == "slide":
            return ids[-_newer_half(limit) :]
        raise HeedfulError(
            f"prompt number {number + 1} has {len(ids)} tokens, more than the {limit} positions of the model",
            where=self.where,
            remedy='shorten it, or let the window slide (when_full="slide"): then its end is read',
        )

    def _written(self, prompts: Sequence[list[int]], asked: Writing, first: int) -> list[list[Generated]]:
        """Each sample of each prompt by itself."""
        texts = [
            _Text(ids, Continuation(self.tokenizer, ids, asked.stop)) for ids in prompts for _ in range(asked.samples)
        ]
        rng = self._chance(asked, first)
        while going := [text for text in texts if text.reason is None]:
            going.sort(key=lambda text: -len(text.prompt))  # equally long ones become neighbours
            for _ in self._round(going, asked, rng):
                pass
        found = [self._generated(text) for text in texts]
        return [found[i : i + asked.samples] for i in range(0, len(found), asked.samples)]

    @torch.inference_mode()
    def _round(self, texts: Sequence[_Text], asked: Writing, rng: torch.Generator) -> Iterator[None]:
        """Go on with texts until each has a reason to end, or the model is full; each is told at once what it says."""
        longest = [min(asked.max_tokens - len(text.said.ids), self._room(len(text.prompt))) for text in texts]
        how = asked.how if isinstance(asked.how, Sampling) else None
        step, state, start = self._started([text.prompt for text in texts], 1, max(longest), asked)
        never = banned_symbols(longest, self.ends.end, self._banned, self.device)
        steps = walk(step, state, longest, (start, self.ends.end), never, 1, chooser(how, rng), 1.0)
        stopped, found = None, None
        while found is None:
            try:
                newest = steps.send(stopped)
            except StopIteration as end:
                found = end.value
                break
            rows = zip(newest.sentences, newest.symbols[:, 0].tolist(), newest.counts[:, 0].tolist(), strict=True)
            stopping = [texts[sentence].said.add(symbol) if counts else False for sentence, symbol, counts in rows]
            stopped = torch.tensor(stopping, device=self.device)[:, None] if any(stopping) else None
            yield
        for text, (hypothesis,) in zip(texts, found, strict=True):
            self._end_round(text, hypothesis, asked)

    def _end_round(self, text: _Text, said: Hypothesis, asked: Writing) -> None:
        text.log_probability += said.log_probability
        if text.said.stopped:
            text.reason = "stop"
        elif said.finished:
            text.reason = "end"
        elif len(text.said.ids) >= asked.max_tokens:
            text.reason = "length"
        elif asked.when_full == "stop":
            text.reason = "full"
        else:
            limit = self.model.encoder.max_length or 0
            text.prompt = [*text.prompt, *said.ids][-_newer_half(limit) :]

    @torch.inference_mode()
    def _searched(self, prompts: Sequence[list[int]], asked: Writing) -> list[list[Generated]]:
        """The best hypotheses of a beam; a stop string only cuts what was found."""
        assert isinstance(asked.how, Beam)
        longest = [min(asked.max_tokens, self._room(len(ids))) for ids in prompts]
        step, state, start = self._started(prompts, asked.how.size, max(longest), asked)
        search = (start, self.ends.end, asked.how, self._banned, self.device)
        found = beam_search(step, state, longest, *search)
        return [
            [self._best_of_beam(ids, most, one, asked) for one in hypotheses]
            for ids, most, hypotheses in zip(prompts, longest, found, strict=True)
        ]

    def _best_of_beam(self, ids: list[int], most: int, said: Hypothesis, asked: Writing) -> Generated:
        text = _Text(ids, Continuation(self.tokenizer, ids, asked.stop), said.log_probability)
        for symbol in said.ids:
            if text.said.add(symbol):
                break
        length: Reason = "length" if most == asked.max_tokens else "full"
        text.reason = "stop" if text.said.stopped else "end" if said.finished else length
        return self._generated(text)

    def _started(self, prompts: Sequence[Sequence[int]], hypotheses: int, longest: int, asked: Writing) -> Any:
        """Step, state and first symbols after prompts, with the repetition penalty that is asked for."""
        read = flat_batch([ids[:-1] for ids in prompts]).to(self.device)
        state: Any = self.model.start(read, hypotheses, longest)
        start = torch.tensor([ids[-1] for ids in prompts], device=self.device)
        if asked.repetition_penalty == 1:
            return self.model.step, state, start
        known = recalling(state, prompts, self.model.encoder.config.vocab_size, self.device)
        return penalised(self.model.step, asked.repetition_penalty), known, start

    def _room(self, prompt: int) -> int:
        """How many symbols can follow a prompt: the last of them takes no position."""
        limit = self.model.encoder.max_length
        return 1 << 62 if limit is None else limit - prompt + 1

    def _generated(self, text: _Text) -> Generated:
        assert text.reason is not None
        return Generated("", text.said.text, text.reason, len(text.said.ids), text.log_probability)

    def _chance(self, asked: Writing, number: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(int(hashed(asked.seed, number)[0]) >> 1)


def _newer_half(limit: int) -> int:
    return max(1, limit // 2)
