"""The one search for all decoders: greedy, beam and sampling over a step function.

A decoder is met only as its step. The newest symbols (B, K), of K hypotheses for each of B sentences, go in with a
state; the logits of the next symbols (B, K, V) come out with the state after them. At first there is one hypothesis a
sentence, and `reorder` makes more of it. Hypotheses are compared by

    score(y) = log P(y | x) / |y|^α

where |y| counts the symbols, the end symbol too, and α is the length penalty: 0 compares probabilities, which fall
with every symbol, 1 compares the mean of a symbol, more favours long ones. Probabilities are the model's own: a banned
symbol is never chosen, but what the model would give to it is not dealt out among the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.errors import HeedfulError
from heedful.nn.top_blocks import best_of_all

if TYPE_CHECKING:
    from typing_extensions import Self

# A batch that sentences have left has one of so many sizes for each doubling: oneDNN prepares a program for every size
# that it meets, which takes longer than a step of a few sentences.
SIZES_A_DOUBLING = 16
# Hypotheses whose logits are looked at together: more than these do not make the product faster, and their logits would
# no longer stay in the processor's cache until the best are found.
AT_ONCE = 96
# Beyond this |y|^α says nothing any more but how long y is.
GREATEST_PENALTY = 10.0


class State(Protocol):
    """What a decoder remembers of B sentences with K hypotheses each."""

    def reorder(self, parents: Tensor) -> Self:
        """Hypothesis k of sentence b goes on from hypothesis parents[b, k] of the same sentence, (B, K).

        There may be more of them than before.
        """

    def keep(self, sentences: Tensor) -> Self:
        """Only these sentences go on, (B',)."""


S = TypeVar("S", bound=State)
# What a search begins with: the same symbol for all sentences, or the last symbol of the prompt of each, (B,).
Start = int | Tensor
Step = Callable[[Tensor, S], tuple[Tensor, S]]


@dataclass(frozen=True)
class Hypothesis:
    """Something that may be said, without start and end symbol."""

    ids: tuple[int, ...]
    score: float
    log_probability: float  # of all symbols, the end symbol included if it is finished
    finished: bool  # whether the end symbol came before the greatest length


class Newest(NamedTuple):
    """A step of a walk: the newest symbols of the sentences that are still in the batch."""

    sentences: Sequence[int]  # the number of each row's sentence
    symbols: Tensor  # (B, K)
    counts: Tensor  # (B, K) whether a symbol is part of what is said: not after the end, nor the end itself


@dataclass(frozen=True)
class Beam:
    """How wide to search, how to weigh length, and how many of the best to give back."""

    size: int = 5
    length_penalty: float = 1.0
    n_best: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.size:
            what = f"the {self.n_best} best of a beam of {self.size}"
            raise HeedfulError(what, remedy="ask for at least 1 and at most as many as the beam is wide")
        if not 0 <= self.length_penalty <= GREATEST_PENALTY:
            what = f"a length penalty of {self.length_penalty:g}"
            raise HeedfulError(what, remedy=f"use a number from 0 to {GREATEST_PENALTY:g}")


@dataclass(frozen=True)
class Sampling:
    """How to draw: from softmax(logits / temperature), restricted to the `top_k` likeliest symbols (0 for all) and then
    to the fewest likeliest ones that together reach `top_p` of the probability; `count` samples for each sentence."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise HeedfulError(f"a temperature of {self.temperature:g}", remedy="use a number above 0")
        if self.top_k < 0 or self.count < 1:
            what = f"{self.count} samples from the top {self.top_k}"
            raise HeedfulError(what, remedy="draw at least 1, from the top 1, 2, … or from all (0)")
        if not 0 < self.top_p <= 1:
            raise HeedfulError(f"a top_p of {self.top_p:g}", remedy="use a probability above 0 and at most 1")


def score_of(log_probability: float, length: int, length_penalty: float) -> float:
    """log P(y | x) / |y|^α."""
    return log_probability / math.pow(length, length_penalty)


def beam_search(
    step: Step[S],
    state: S,
    longest: Sequence[int],
    start: Start,
    end: int,
    how: Beam,
    banned: Sequence[int] = (),
    device: str = "cpu",
    logits: Callable[[Tensor], Tensor] = lambda given: given,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses that a beam finds for each sentence, the best first, those without an end last.

    In every step the K best continuations of all K hypotheses are looked at. Those that end are finished, and the K
    best that do not end go on. A sentence is done when K are finished, when nothing that goes on could still become
    one of the `n_best`, or when sentence b has `longest[b]` symbols. So K = 1 is greedy search, and a beam as wide as
    there are hypotheses is exhaustive. With `logits`, the step gives only states (B, K, D), whose logits are asked for
    a part at a time and then written over.
    """
    never = banned_symbols(longest, end, banned, device)
    sentences = [_Sentence(how, most) for most in longest]
    active = list(range(len(longest)))  # the sentence of each row of the batch
    tokens = _first(start, len(active), 1, device)
    said = tokens.new_empty((*tokens.shape, 0))  # (B, K, length)
    sums = torch.zeros(tokens.shape, device=device)
    for length in range(1, max(longest, default=0) + 1):
        given, state = step(tokens, state)
        values, parents, symbols = _continuations(given, logits, sums, never, how.size)
        ended = symbols == end
        rows, ranks = (ended & (values > -math.inf))[:, : how.size].nonzero().unbind(1)
        _close(sentences, active, rows, said[rows, parents[rows, ranks]], values[rows, ranks], finished=True)
        sums, chosen = values.masked_fill(ended, -math.inf).topk(how.size)
        parents, tokens = parents.gather(1, chosen), symbols.gather(1, chosen)
        said = said.gather(1, parents[..., None].expand(-1, -1, said.shape[-1]))
        said = torch.cat([said, tokens[..., None]], dim=-1)
        if length in longest:
            full = torch.tensor([longest[sentence] == length for sentence in active], device=device)
            rows, ranks = (full[:, None] & (sums > -math.inf)).nonzero().unbind(1)
            _close(sentences, active, rows, said[rows, ranks], sums[rows, ranks], finished=False)
        best = sums[:, 0].tolist()
        going = [row for row, sentence in enumerate(active) if not sentences[sentence].is_done(length, best[row])]
        if not going:
            break
        if len(going) < len(active):
            sums[sorted(set(range(len(active))) - set(going))] = -math.inf  # if these stay, nothing becomes of them
        staying = _staying(going, len(active))
        if len(staying) < len(active):
            kept = torch.tensor(staying, device=device)
            active = [active[row] for row in staying]
            state, sums, parents, tokens, said = state.keep(kept), sums[kept], parents[kept], tokens[kept], said[kept]
        state = state.reorder(parents)
    return [sentence.best() for sentence in sentences]


def greedy(
    step: Step[S],
    state: S,
    longest: Sequence[int],
    start: Start,
    end: int,
    banned: Sequence[int] = (),
    device: str = "cpu",
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """Of each sentence the hypothesis that always takes the likeliest symbol."""
    never = banned_symbols(longest, end, banned, device)
    steps = walk(step, state, longest, (start, end), never, 1, chooser(None, None), length_penalty)
    return [hypothesis for (hypothesis,) in walked(steps)]


def sample(
    step: Step[S],
    state: S,
    longest: Sequence[int],
    start: Start,
    end: int,
    how: Sampling,
    rng: torch.Generator,
    banned: Sequence[int] = (),
    device: str = "cpu",
) -> list[list[Hypothesis]]:
    """`count` hypotheses of each sentence, drawn symbol by symbol; their score is the mean of a symbol (α = 1)."""
    never = banned_symbols(longest, end, banned, device)
    return walked(walk(step, state, longest, (start, end), never, how.count, chooser(how, rng), 1.0))


def chooser(how: Sampling | None, rng: torch.Generator | None) -> Callable[[Tensor], Tensor]:
    """What takes the next symbols from logits, (B, K, V) -> (B, K): at random as `how` says, else the likeliest."""
    if how is None or rng is None:
        return lambda logits: logits.argmax(-1)
    return lambda logits: _draw(logits, how, rng)


@dataclass
class _Sentence:
    """The closed hypotheses of a sentence."""

    how: Beam
    longest: int
    closed: list[Hypothesis] = field(default_factory=list)

    def is_done(self, length: int, best: float) -> bool:
        """Whether the answer is certain; `best` is the log-probability of the likeliest hypothesis that goes on."""
        if length == self.longest or best == -math.inf or len(self.closed) >= self.how.size:
            return True
        # It only becomes less likely, and no length is better for it than the greatest.
        bound = score_of(best, self.longest, self.how.length_penalty)
        return len(self.closed) >= self.how.n_best and bound <= self.best()[-1].score

    def best(self) -> list[Hypothesis]:
        return sorted(self.closed, key=lambda one: (not one.finished, -one.score))[: self.how.n_best]


def _close(
    sentences: Sequence[_Sentence], active: Sequence[int], rows: Tensor, said: Tensor, sums: Tensor, finished: bool
) -> None:
    """Hand hypotheses, one for each of `rows`, to the sentences of these rows."""
    for row, ids, log_probability in zip(rows.tolist(), said.tolist(), sums.tolist(), strict=True):
        sentence = sentences[active[row]]
        score = score_of(log_probability, len(ids) + finished, sentence.how.length_penalty)
        sentence.closed.append(Hypothesis(tuple(ids), score, log_probability, finished))


def _continuations(
    given: Tensor, logits: Callable[[Tensor], Tensor], sums: Tensor, never: Tensor, beam: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence, best first: log-probabilities, parents and symbols, each (B, beam …).

    At most one of each parent ends, so that of twice the beam enough are left to go on. Where there are too few, what
    fills up is impossible.
    """
    found = []
    sentences = max(1, AT_ONCE // given.shape[1])
    for part, before in zip(torch.split(given, sentences), torch.split(sums, sentences), strict=True):
        said = logits(part)
        values = _log_probabilities(said, own=said is not part).index_fill_(-1, never, -math.inf)
        found.append(best_of_all(values, before, min(2 * beam, values.shape[1] * values.shape[2])))
    totals, parents, symbols = (torch.cat(parts) for parts in zip(*found, strict=True))
    missing = beam - totals.shape[1]
    if missing <= 0:
        return totals, parents, symbols
    return F.pad(totals, (0, missing), value=-math.inf), F.pad(parents, (0, missing)), F.pad(symbols, (0, missing))


def walk(
    step: Step[S],
    state: S,
    longest: Sequence[int],
    ends: tuple[Start, int],
    never: Tensor,
    count: int,
    choose: Callable[[Tensor], Tensor],
    length_penalty: float,
) -> Generator[Newest, Tensor | None, list[list[Hypothesis]]]:
    """Hypotheses that each go their own way, by the symbols (B, K) that `choose` takes from the logits (B, K, V).

    The newest symbols come out step by step. Whoever listens may send back which hypotheses end with theirs, (B, K).
    """
    start, end = ends
    device = never.device
    found: list[dict[int, Hypothesis]] = [{} for _ in longest]
    active = list(range(len(longest)))
    most = torch.tensor(longest, device=device)[:, None]  # (B, 1)
    tokens = _first(start, len(active), count, str(device))
    said = tokens.new_empty((*tokens.shape, 0))
    sums = torch.zeros(tokens.shape, device=device)
    underway = torch.ones_like(tokens, dtype=torch.bool)
    if count > 1:
        state = state.reorder(torch.zeros_like(tokens))
    for length in range(1, max(longest, default=0) + 1):
        logits, state = step(tokens, state)
        values = _log_probabilities(logits).index_fill_(-1, never, -math.inf)
        tokens = choose(values)
        sums = sums + values.gather(-1, tokens[..., None])[..., 0]
        ended = tokens == end
        stopped = yield Newest(active, tokens, underway & ~ended)
        over = ended | (most == length) if stopped is None else ended | stopped | (most == length)
        rows, places = (underway & over).nonzero().unbind(1)
        columns = (x.tolist() for x in (rows, places, *(y[rows, places] for y in (said, tokens, sums))))
        for row, place, ids, last, log_probability in zip(*columns, strict=True):
            score = score_of(log_probability, length, length_penalty)
            whole = tuple(ids if last == end else [*ids, last])
            found[active[row]][place] = Hypothesis(whole, score, log_probability, last == end)
        underway = underway & ~over
        said = torch.cat([said, tokens[..., None]], dim=-1)
        going = underway.any(1).nonzero()[:, 0].tolist()
        if not going:
            break
        staying = _staying(going, len(active))
        if len(staying) < len(active):
            kept = torch.tensor(staying, device=device)
            active = [active[row] for row in staying]
            state, most, tokens, said = state.keep(kept), most[kept], tokens[kept], said[kept]
            sums, underway = sums[kept], underway[kept]
    return [[hypotheses[place] for place in range(count)] for hypotheses in found]


def walked(steps: Generator[Newest, Tensor | None, list[list[Hypothesis]]]) -> list[list[Hypothesis]]:
    """What a walk comes to when nobody listens on the way."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[list[Hypothesis]] = end.value
            return found


def _first(start: Start, sentences: int, count: int, device: str) -> Tensor:
    """The symbols that the first step is given, (B, count)."""
    if isinstance(start, int):
        return torch.full((sentences, count), start, device=device)
    return start.to(device)[:, None].expand(-1, count)


def _draw(logits: Tensor, how: Sampling, rng: torch.Generator) -> Tensor:
    """A symbol of each hypothesis at random, (B, K, V) -> (B, K); however cold it is, the best logit stays 0."""
    scaled = logits if how.temperature == 1 else (logits - logits.amax(-1, keepdim=True)) / max(how.temperature, 1e-30)
    scaled, symbols = scaled.flatten(0, 1), None
    if how.top_k or how.top_p < 1:
        scaled, symbols = scaled.topk(min(how.top_k or scaled.shape[1], scaled.shape[1]))
    probabilities = scaled.softmax(-1)
    if how.top_p < 1:
        before = probabilities.cumsum(-1) - probabilities  # how much the likelier ones have together
        probabilities = probabilities.masked_fill(before >= max(how.top_p, 1e-30), 0.0)
    drawn = probabilities.multinomial(1, generator=rng)
    return (drawn if symbols is None else symbols.gather(1, drawn)).view(logits.shape[:2])


def _log_probabilities(logits: Tensor, own: bool = False) -> Tensor:
    """In memory of their own, which the search may write into; where the logits are its `own`, in theirs."""
    into = logits if own and logits.dtype == torch.float32 and logits.device.type == "cpu" else None
    found = torch.log_softmax(logits, -1, dtype=torch.float32, out=into)
    if bool(found[..., 0].isnan().any()):  # where one logit is infinite or not a number, none of these is a number
        what = "the model's outputs are no numbers (infinite or NaN)"
        raise HeedfulError(what, remedy="its training went wrong: use an earlier checkpoint, or a lower learning rate")
    return found


def banned_symbols(longest: Sequence[int], end: int, banned: Sequence[int], device: str) -> Tensor:
    """The symbols that are never chosen, as a tensor; what cannot be asked for is refused."""
    if min(longest, default=1) < 1:
        raise HeedfulError(f"at most {min(longest)} symbols", remedy="leave room for the end symbol at least")
    if end in banned:
        raise HeedfulError("the end symbol is banned", remedy="without it nothing ends: take it off the list")
    return torch.tensor(list(banned), dtype=torch.long, device=device)


def _staying(going: Sequence[int], rows: int) -> list[int]:
    """Which of so many rows stay in the batch: those that go on, and as many others as make a size of a few.

    Most keep their places. The last ones take those that are free, so that little is moved.
    """
    step = max(1, (1 << (len(going) - 1).bit_length()) // 2 // SIZES_A_DOUBLING)
    size = min(rows, len(going) + -len(going) % step)
    others = sorted(set(range(rows)).difference(going))
    staying = sorted([*going, *others[: size - len(going)]])
    first = {row for row in staying if row < size}
    free = (row for row in range(size) if row not in first)
    placed = dict(zip(free, staying[len(first) :], strict=True))
    return [placed.get(row, row) for row in range(size)]
