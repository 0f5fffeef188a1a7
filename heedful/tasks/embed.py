"""Sentence vectors: texts that mean the same come near each other, all others stay away.

    pairs    l_i = -log( exp(cos(a_i, p_i) / τ) / Σ_j exp(cos(a_i, c_j) / τ) ), c the others' second texts and negatives
    scored   (cos(a, b) - score)²
    lines    as pairs, each line with itself: dropout makes the two vectors differ (SimCSE)

What is known to mean the same as a_i, because the same text stands there, is no negative of it. A loss depends on the
whole batch, so that a batch is never cut for the loss; its vectors are computed a part at a time (`JointMicroBatch`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.data.labelled.dataset import PLACES, Columns, Dataset, Remark, SentencePair
from heedful.data.labelled.sentence_pairs import read_sentence_pairs
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import Pooling, SentenceEncoder
from heedful.tasks.similarity_scores import Scored, rescorer
from heedful.tasks.task import Item, Prediction, Rescorer, Task
from heedful.tasks.text_items import summed_up
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer, was_truncated

# The top of a scale of scores is the first of these that is not exceeded.
TOPS = (1.0, 5.0, 10.0, 100.0)
OTHER_TEXTS = "give different texts; from lines alone (a single column) a model learns by dropout"
FEW_SCORES = 0.01  # of the rows: scores that only so few exceed may be mistakes


class Compared(dict[str, Any]):
    """A prediction that also carries the vectors it was made from, which scores need and files do not."""

    vectors: NDArray[np.float32]  # (texts of the row, D), each of length 1


@dataclass(frozen=True)
class Embed(Task[SentencePair]):
    """How similar? Scored pairs are judged by Spearman's correlation, other pairs by finding each other."""

    name: ClassVar[str] = "embed"
    best: ClassVar[str] = "spearman"
    layouts: ClassVar[tuple[tuple[str, ...], ...]] = (("text",), ("text", "pair"), ("text", "pair", "score"))
    scores: ClassVar[tuple[str, ...]] = (
        *("spearman", "pearson", "mrr", "recall@1", "recall@5", "recall@10", "alignment", "uniformity"),
    )
    errors: ClassVar[tuple[str, ...]] = ("alignment", "uniformity")
    architecture: ClassVar[str | None] = "Model"
    whole_batch: ClassVar[bool] = True

    learns: Literal["pairs", "scored", "lines", "teacher"] = "pairs"  # of a teacher: see distilling.py
    pooling: Pooling = "mean"
    temperature: float = 0.05
    low: float = 0.0  # the scores that stand for the cosines 0 and 1
    high: float = 1.0

    @property
    def sentence(self) -> SentenceSettings:
        """How sentence-transformers is to make the same vectors."""
        return SentenceSettings(self.pooling)

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[SentencePair]:
        """Rows of a table or JSON-lines file, or lines."""
        return read_sentence_pairs(path, columns, labelled)

    @classmethod
    def example(cls, given: Any) -> SentencePair:
        """A text, a pair of texts, or a mapping with `text` and perhaps `pair`."""
        if isinstance(given, SentencePair):
            return given
        both = (given.get("text"), given.get("pair")) if isinstance(given, Mapping) else given
        both = (both, None) if isinstance(both, str) else both
        if isinstance(both, list | tuple) and len(both) == 2 and isinstance(both[0], str):
            second: object = both[1]
            if second is None or isinstance(second, str):
                return SentencePair(both[0], second)
        what = f"an input of type {type(given).__name__} is not understood"
        raise HeedfulError(what, remedy='give a text, a pair of texts, or {"text": …, "pair": …}')

    @classmethod
    def fit(cls, examples: Sequence[SentencePair], **fields: Any) -> Embed:
        """What is learned from: scored pairs, pairs, or lines alone; of scores also their scale."""
        if not examples:
            raise HeedfulError("there are no rows", remedy="give texts, or pairs of texts")
        task = cls(**fields)
        if task.temperature <= 0:
            raise HeedfulError(f"a temperature of {task.temperature}", remedy="use one above 0, as 0.05")
        if examples[0].pair is None:
            _refuse_if(len({_plain(one.text) for one in examples}) < 2, "all lines are the same text", examples)
            return replace(task, learns="lines")
        if examples[0].score is None:
            _check_pairs(examples)
            return replace(task, learns="pairs")
        low, high = _scale(examples)
        return replace(task, learns="scored", low=low, high=high)

    def check(self, examples: Sequence[SentencePair]) -> None:
        """Whatever is read can be scored."""

    def doubtful(self, examples: Sequence[SentencePair]) -> tuple[Remark, ...]:
        """A few scores that make the scale of all the others a larger one."""
        lower = max((top for top in TOPS if top < self.high), default=self.high)
        above = [one.where for one in examples if one.score is not None and one.score > lower]
        if self.learns != "scored" or lower == self.high or len(above) > max(1, len(examples) * FEW_SCORES):
            return ()
        what = f"scores above {lower:g}: because of them {self.high:g}, not {lower:g}, counts as the same meaning"
        return (Remark(what, len(above), tuple(above[:PLACES])),)

    def encode(self, examples: Sequence[SentencePair], tokenizer: Tokenizer) -> list[Item]:
        """One item a row, with a window for each of its texts; of a line to learn from, twice the same."""
        every = [text for one in examples for text in self._texts(one)]
        encoded = iter(tokenizer.encode_batch(every, self.max_length, offsets=False))
        numbers: dict[str, int] = {}
        items = []
        for place, one in enumerate(examples):
            texts = self._texts(one)
            pieces = [next(encoded) for _ in texts]
            windows = tuple(summed_up(piece.ids, piece.type_ids, tokenizer) for piece in pieces)
            target = self._target(one, [numbers.setdefault(_plain(text), len(numbers)) for text in texts])
            items.append(Item(place, windows, target, cut=any(map(was_truncated, pieces))))
        return items

    def _texts(self, one: SentencePair) -> list[str]:
        if one.pair is None:
            return [one.text] * (2 if self.learns == "lines" else 1)
        return [one.text, one.pair, *(() if self.learns == "scored" else one.negatives)]

    def _target(self, one: SentencePair, texts: Sequence[int]) -> tuple[float, ...]:
        if self.learns == "teacher":
            return ()
        if self.learns == "scored":
            return () if one.score is None else ((one.score - self.low) / (self.high - self.low),)
        return (len(texts), *texts)

    def model(self, encoder: Encoder) -> nn.Module:
        """The encoder and its pooling, and nothing on top."""
        return SentenceEncoder(encoder, self.pooling)

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """That of the batch: each text against all others, or the squared errors of cosines."""
        vectors = F.normalize(outputs, dim=-1)
        if self.learns == "scored":
            cosines = (vectors[0::2] * vectors[1::2]).sum(-1)
            return F.mse_loss(cosines, targets.to(cosines.dtype), reduction="sum")
        return contrastive_loss(vectors, list(_rows(targets.tolist())), self.temperature)

    def decode(
        self,
        model: nn.Module,
        examples: Sequence[SentencePair],
        items: Sequence[Item],
        outputs: Sequence[Sequence[Tensor]],
    ) -> list[Prediction]:
        """The cosine of a pair, or the vector of a text."""
        return [self._prediction(one, torch.cat(list(windows))) for one, windows in zip(examples, outputs, strict=True)]

    def _prediction(self, one: SentencePair, vectors: Tensor) -> Prediction:
        unit = F.normalize(vectors.float(), dim=-1)
        said = {"vector": vectors[0].tolist()} if one.pair is None else {"similarity": float(unit[0] @ unit[1])}
        found = Compared(said)
        found.vectors = unit.numpy()
        return found

    def said(self, prediction: Prediction) -> str:
        """The cosine."""
        return f"{prediction['similarity']:.3f}" if "similarity" in prediction else "(a vector)"

    def decides(self, examples: Sequence[SentencePair]) -> str:
        """Spearman's correlation where dev has scores, the reciprocal rank where it has pairs, else the spread."""
        if examples[0].pair is None:
            return "uniformity"
        return "mrr" if examples[0].score is None else "spearman"

    def score(self, examples: Sequence[SentencePair], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """Correlations of scored pairs; ranks among all second texts of other pairs; alignment and uniformity."""
        return self.rescorer(examples, predictions)(np.arange(len(examples)))

    def rescorer(self, examples: Sequence[SentencePair], predictions: Sequence[Prediction]) -> Rescorer:
        """As `score`, with each text compared once."""
        rows = []
        for one, said in zip(examples, predictions, strict=True):
            assert isinstance(said, Compared)
            texts = [one.text] if one.pair is None else self._texts(one)
            rows.append(Scored(tuple(map(_plain, texts)), one.score, said.vectors))
        return rescorer(rows)


def contrastive_loss(vectors: Tensor, rows: Sequence[tuple[int, ...]], temperature: float) -> Tensor:
    """The summed loss of unit vectors (R, D) of texts numbered in `rows`: anchor, positive and negatives of each item.

    The candidates of all anchors are all positives and, after them, all negatives.
    """
    starts = np.cumsum([0, *map(len, rows)])[:-1].tolist()
    extra = [start + place for start, row in zip(starts, rows, strict=True) for place in range(2, len(row))]
    anchors, candidates = vectors[starts], vectors[[*(start + 1 for start in starts), *extra]]
    logits = anchors @ candidates.T / temperature
    first = torch.tensor([row[0] for row in rows])
    second = torch.tensor([row[1] for row in rows])
    texts = torch.cat([second, torch.tensor([text for row in rows for text in row[2:]], dtype=torch.long)])
    same = (texts == second[:, None]) | (texts == first[:, None])
    same[:, : len(rows)] |= first == first[:, None]
    same.fill_diagonal_(False)
    masked = logits.masked_fill(same.to(logits.device), -torch.inf)
    return F.cross_entropy(masked, torch.arange(len(rows), device=logits.device), reduction="sum")


def _rows(targets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The numbers of the texts of each item, behind how many they are."""
    place = 0
    while place < len(targets):
        size = int(targets[place])
        yield tuple(int(text) for text in targets[place + 1 : place + 1 + size])
        place += 1 + size


def _plain(text: str) -> str:
    """What two texts have in common that differ by white space only."""
    return " ".join(text.split())


def _refuse_if(wrong: bool, what: str, examples: Sequence[SentencePair], remedy: str = OTHER_TEXTS) -> None:
    if wrong:
        raise HeedfulError(what, where=examples[0].where or None, remedy=remedy)


def _check_pairs(examples: Sequence[SentencePair]) -> None:
    """Refuse pairs that leave nothing to tell the right text from, in whatever batches they come."""
    if any(map(_has_a_negative, examples)):
        return
    pairs = {(_plain(one.text), _plain(one.pair or "")) for one in examples}
    alike = all(first == second for first, second in pairs)
    _refuse_if(alike, "every pair is a text and the same text again", examples)
    firsts, seconds = ({pair[side] for pair in pairs} for side in (0, 1))
    _refuse_if(len(firsts | seconds) < 3, "all pairs are the same two texts", examples)
    _refuse_if(len(firsts) < 2, "all pairs have the same first text", examples)
    _refuse_if(len(seconds) < 2, "all pairs have the same second text", examples)


def _has_a_negative(one: SentencePair) -> bool:
    """Whether a text is given that neither of the pair is."""
    both = {_plain(one.text), _plain(one.pair or "")}
    return any(_plain(text) not in both for text in one.negatives)


def _scale(examples: Sequence[SentencePair]) -> tuple[float, float]:
    """The scores of the cosines 0 and 1."""
    scores = [0.0 if one.score is None else one.score for one in examples]
    least, most = min(scores), max(scores)
    remedy = "give pairs that are more and less alike, or name another column with `label`"
    _refuse_if(least == most, f"all pairs have the score {least:g}", examples, remedy)
    if least >= -1 and most <= 1:
        return 0.0, 1.0
    top = next((top for top in TOPS if most <= top), None)
    if least < 0 or top is None:
        odd = next(one for one in examples if one.score == (least if least < 0 else most))
        raise HeedfulError(
            f"the score {odd.score:g} is out of range: scores are from 0 to 1, 5, 10 or 100, or cosines from -1 to 1",
            where=odd.where or None,
            remedy="scale them, or name another column with `label`",
        )
    return 0.0, top
