"""Examples for a permutation language model, by number: stretches of text, [SEP] [CLS] after each, and an order.

The tokens of a stretch get a random order, and the last 1/K of it are to be predicted, each from those before it:

    tokens   the  cat  sees  a  dog  .  [SEP] [CLS]
    turn     -1   1    -1   -1  0   -1  -1    -1       dog is predicted from all but cat, and cat from all others

All stretches are as long as the recipe says, unless a document is shorter; of its last two one overlaps the other. With
a memory they go on from step to step instead, in a lane for each row of the batch, [SEP] between documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from heedful.data.chance import shuffled, uniform
from heedful.data.corpus.corpus import Corpus, TokenText
from heedful.data.corpus.examples import Examples
from heedful.data.corpus.phases import Place
from heedful.data.corpus.reading import Part
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.data.corpus.source import as_micro_batch
from heedful.data.corpus.stream import TokenStream
from heedful.data.shards import Array
from heedful.errors import HeedfulError
from heedful.schema import Batch
from heedful.text.ends import Ends

# What a random number is for.
_STRETCH, _TURN = 40, 41
SUMMARY_SEGMENT = 2  # of [CLS], as XLNet has it
ENDING = 2  # [SEP] and [CLS]


@dataclass(frozen=True)
class PermutationRecipe(ExampleRecipe):
    """How permuted examples are made from a corpus."""

    objective: str = "permutation"

    predict_one_in: int = 6
    memory: int = 0  # states of the text before that are seen too, those of so many tokens; XLNet's mem_len

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory < 0:
            raise HeedfulError(f"`memory` is {self.memory}", remedy="use 0 for none, or a number of tokens")
        if self.predict_one_in < 2:
            what = f"one token in {self.predict_one_in} leaves nothing to predict it from"
            raise HeedfulError(what, remedy="use 2 or more; the paper has 6 and 7")


@dataclass(frozen=True)
class PermutedMicroBatch:
    """A micro-batch: the turn of each of its tokens, and M of them to be predicted."""

    batch: Batch
    order: Tensor  # (N,) -1 for what all see
    targets: Tensor  # (M,) flat places, ascending
    labels: Tensor  # (M,) the ids that stand there
    padding: int  # tokens that a padded batch of this micro-batch would add
    lanes: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))  # (B,) where there is a memory,
    fresh: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))  # (B,) and which begin anew

    @property
    def counts(self) -> Mapping[str, int]:
        """What the sum of the loss is to be divided by."""
        return {"permutation": len(self.labels)}

    @property
    def tokens(self) -> int:
        """N, the tokens in the batch."""
        return len(self.batch.ids)

    def to(self, device: str) -> PermutedMicroBatch:
        """The same on another device."""
        names = ("order", "targets", "labels", "lanes", "fresh")
        return replace(self, batch=self.batch.to(device), **{name: getattr(self, name).to(device) for name in names})


class PermutedExamples:
    """Makes any examples of one part of a corpus, in any order, always the same for the same number."""

    def __init__(self, corpus: Corpus, recipe: PermutationRecipe, part: Part = "train") -> None:
        self.recipe = recipe
        self.text = corpus.train if part == "train" else corpus.held_out
        self.ending = np.array([corpus.tokenizer.sep_id, corpus.tokenizer.cls_id], np.int64)
        self.starts, self.stops = stretches(self.text, recipe.max_length - len(self.ending))
        if not len(self.starts):
            raise HeedfulError("this part of the corpus has no text", remedy="build the corpus from more documents")

    def __len__(self) -> int:
        """How many examples go once through the text."""
        return len(self.starts)

    def take(self, numbers: Array) -> tuple[Examples, Array]:
        """The examples of these numbers, the longest first, and the turn of each token; past the end all is anew."""
        size = len(self)
        chosen = shuffled(numbers % size, size, self.recipe.seed, _STRETCH, numbers // size)
        by_length = np.argsort(self.starts[chosen] - self.stops[chosen], kind="stable")
        chosen, numbers = chosen[by_length], numbers[by_length]
        parts = [self.text.read("tokens", int(self.starts[i]), int(self.stops[i])) for i in chosen]
        ids = np.concatenate([part for tokens in parts for part in (tokens.astype(np.int64), self.ending)])
        lengths = np.array([len(tokens) + len(self.ending) for tokens in parts])
        return _with_turns(numbers, lengths, ids, self.recipe)


class PermutedLanes:
    """Text that goes on from step to step, a lane for each row of the batch: each is as long as the others."""

    def __init__(self, corpus: Corpus, recipe: PermutationRecipe) -> None:
        sep = corpus.tokenizer.sep_id
        self.recipe, self.where = recipe, corpus.folder
        self.stream = TokenStream(corpus.train, Ends(sep, sep, framed=False))
        self.ending = np.array([sep, corpus.tokenizer.cls_id], np.int64)

    def take(self, place: Place, rows: Array) -> PermutedMicroBatch:
        """These lanes at a step; at their end they begin again, and remember nothing."""
        room = self.recipe.max_length - ENDING
        reach = len(self.stream) // place.batch_size
        steps = reach // room
        if steps < 1:
            what = f"{place.batch_size} lanes of {room} tokens are more than the text has, {len(self.stream)}"
            remedy = "use a smaller `batch_size`, shorter `phases`, or a larger corpus"
            raise HeedfulError(what, where=self.where, remedy=remedy)
        turn = place.step % steps
        starts = (rows * reach + turn * room).tolist()
        ids = np.concatenate([part for s in starts for part in (self.stream.read(s, s + room), self.ending)])
        lengths = np.full(len(rows), self.recipe.max_length)
        plain = as_permuted(*_with_turns(place.first + rows, lengths, ids, self.recipe))
        fresh = torch.full((len(rows),), turn == 0)
        return replace(plain, lanes=torch.from_numpy(rows.copy()), fresh=fresh)


def _with_turns(numbers: Array, lengths: Array, ids: Array, recipe: PermutationRecipe) -> tuple[Examples, Array]:
    """Texts with their endings as examples of these numbers, and the turn of each token."""
    segments = np.zeros(len(ids), np.int64)
    segments[np.cumsum(lengths) - 1] = SUMMARY_SEGMENT
    turns = _turns(lengths, numbers, recipe)
    targets = np.flatnonzero(turns >= 0)
    return Examples(numbers, lengths, ids, segments, targets, ids[targets], None), turns


def _turns(lengths: Array, numbers: Array, recipe: PermutationRecipe) -> Array:
    """Random turns for one token in K, which is never one of the ending; -1 for all others."""
    firsts = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(int(lengths.sum())) - firsts[owner]
    texts = (lengths - ENDING)[owner]
    drawn = np.where(places < texts, uniform(recipe.seed, _TURN, numbers[owner], places), -1.0)
    rank = np.empty(len(owner), np.int64)
    rank[np.lexsort((drawn, owner))] = places  # the first in the order has rank 0
    predicted = np.maximum(texts // recipe.predict_one_in, np.minimum(texts - 1, 1))
    turns: Array = np.maximum(rank - (lengths[owner] - predicted), -1)
    return turns


class PermutedBatches:
    """Batches of examples by their number, which goes on from step to step and from phase to phase."""

    def __init__(self, examples: PermutedExamples) -> None:
        self.examples = examples

    def take(self, place: Place, rows: Array) -> PermutedMicroBatch:
        """These rows of the batch at a place."""
        return as_permuted(*self.examples.take(place.first + rows))


def as_permuted(examples: Examples, turns: Array) -> PermutedMicroBatch:
    """The same examples as tensors."""
    plain = as_micro_batch(examples)
    return PermutedMicroBatch(plain.batch, torch.from_numpy(turns), plain.masked, plain.labels, plain.padding)


def stretches(text: TokenText, room: int) -> tuple[Array, Array]:
    """Starts and stops that cover all documents: of `room` tokens each, or a whole document that has fewer."""
    documents = text.document_starts if text.tokens else np.zeros(1, np.int64)
    begins, sizes = documents[:-1], np.diff(documents)
    counts = -(-sizes // room)
    owner = np.repeat(np.arange(len(sizes)), counts)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = begins[owner] + np.minimum(within * room, np.maximum(sizes[owner] - room, 0))
    return starts, np.minimum(starts + room, documents[1:][owner])
