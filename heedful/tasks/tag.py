"""Tagging: a label for every word, from the state of its first piece.

A sentence that is too long is read in windows, and each word goes by the window that shows the most around it. A CRF
then looks for the best path through the whole sentence, not through a window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from math import nan
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tokenizers import Encoding
from torch import Tensor, nn

from heedful.data.labelled.conll import read_tagged, tagged_from_text, tagged_from_words
from heedful.data.labelled.dataset import Columns, Dataset, Remark, TaggedWords, tagged_words
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import Tagger
from heedful.nn.crf import Crf, bio_transitions
from heedful.tasks.entities import Tags, entities, entity_counts, entity_scores, repair
from heedful.tasks.label_metrics import LabelScores, per_label, require_pairs
from heedful.tasks.task import Detail, Item, Prediction, Rescorer, Task, Window
from heedful.tasks.unseen import all_labels, confusion_table, unseen_labels
from heedful.tasks.windows import home, spread
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Tag(Task[TaggedWords]):
    """Which label does each word have?

    Where the labels are O, B-X and I-X, precision, recall and F1 are those of whole entities, as conlleval has them;
    of any other labels they are the accuracy, which is the micro average over words.
    """

    name: ClassVar[str] = "tag"
    best: ClassVar[str] = "f1"
    layouts: ClassVar[tuple[tuple[str, ...], ...]] = (("words", "tags"),)
    scores: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "accuracy")

    labels: tuple[str, ...] = ()
    head: Literal["linear", "bilstm", "crf", "bilstm-crf"] = "linear"
    features: tuple[int, ...] = ()  # layers of a frozen encoder to look at, instead of training it
    lstm_width: int = 256
    lstm_layers: int = 1
    combine: Literal["concat", "sum", "mix"] = "concat"  # how several layers of features are joined
    mix: tuple[float, ...] = ()  # the weights of a mix, where they are given and not learned

    def __post_init__(self) -> None:
        if self.mix and self.combine != "mix":
            raise HeedfulError("weights for a mix of layers, but no mix", remedy="use `combine` mix")
        if self.mix and len(self.mix) != len(self.features):
            what = f"{len(self.mix)} weights for a mix of {len(self.features)} layers"
            raise HeedfulError(what, remedy="give one for each layer of `features`")

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[TaggedWords]:
        """Sentences of a CoNLL or JSON-lines file; without tags, also the texts in a column of a table."""
        return read_tagged(path, labelled, columns)

    @classmethod
    def example(cls, given: Any) -> TaggedWords:
        """A text, a sequence of words, or a mapping with `text` or `words`."""
        if isinstance(given, TaggedWords):
            return given
        words = given.get("words", given.get("text")) if isinstance(given, Mapping) else given
        if isinstance(words, str):
            return tagged_from_text(words)
        if isinstance(words, list | tuple) and all(isinstance(word, str) for word in words):
            return tagged_from_words(words)
        what = f"an input of type {type(given).__name__} is not understood"
        raise HeedfulError(what, remedy='give a text, a list of words, {"text": …} or {"words": […]}')

    @classmethod
    def fit(cls, examples: Sequence[TaggedWords], **fields: Any) -> Tag:
        """The labels that occur, O first and the others sorted."""
        tags = {tag for example in examples for tag in example.tags or ()}
        if len(tags) < 2:
            raise HeedfulError(
                f"there is only the tag {tags.pop()!r}" if tags else "there are no tags",
                where=examples[0].where or None if examples else None,
                remedy="give sentences with at least two different tags",
            )
        return cls(labels=tuple(sorted(tags, key=lambda tag: (tag != "O", tag))), **fields)

    def check(self, examples: Sequence[TaggedWords]) -> None:
        """Refuse sentences without tags."""
        for example in examples:
            if example.tags is None:
                what, remedy = "the words have no tags", "give a tag for each word"
                raise HeedfulError(what, where=example.where or None, remedy=remedy)

    def unseen(self, examples: Sequence[TaggedWords]) -> tuple[Remark, ...]:
        """Words whose tag training never showed: no answer to them is right."""
        tagged = ((tag, example.where) for example in examples for tag in example.tags or ())
        return unseen_labels(tagged, self.labels, "tag")

    def encode(self, examples: Sequence[TaggedWords], tokenizer: Tokenizer) -> list[Item]:
        """One item a sentence, or one for each window of a long one; none for a sentence without words."""
        encodings = tokenizer.encode_words([example.words for example in examples])
        sentences = enumerate(zip(examples, encodings, strict=True))
        return [item for number, (one, encoding) in sentences for item in self._items(number, one, encoding, tokenizer)]

    def _items(self, number: int, example: TaggedWords, encoding: Encoding, tokenizer: Tokenizer) -> Iterator[Item]:
        ids, starts = _pieces(len(example.words), encoding, tokenizer.unk_id)
        frame = tokenizer.frame
        for window in spread(len(ids), self.max_length - frame.single.size, self.stride):
            words = range(bisect_left(starts, window.start), bisect_left(starts, window.stop))
            if not words:
                continue
            first = starts[words.start]  # a window begins with a word, not in the midst of one
            rows = [len(frame.single.before.ids) + starts[word] - first for word in words]
            yield Item(
                number,
                (Window(*frame.joined(ids[first : window.stop]), rows),),
                target=self._target(example, words),
                weight=1 if self._has_crf else len(rows),
                spans=tuple((word, word + 1) for word in words),
            )

    def _target(self, example: TaggedWords, words: range) -> tuple[int, ...]:
        tags = list((example.tags or ())[words.start : words.stop])
        if self._has_crf and self.finds_entities:
            tags, _ = repair(tags)  # to a CRF no path may start inside an entity, as a window can
        numbers = {label: number for number, label in enumerate(self.labels)}
        return tuple(numbers[tag] for tag in tags) if numbers.keys() >= set(tags) else ()

    def model(self, encoder: Encoder) -> nn.Module:
        """A linear layer over the encoder, with a BiLSTM below it or a CRF above it where asked for."""
        size = len(self.labels)
        shape = (self.lstm_width, self.lstm_layers, self.combine, self.mix)
        tagger = Tagger(encoder, size, self.head, self.features, *shape)
        if self._has_crf and self.finds_entities:
            tagger.crf = Crf(size, *bio_transitions(self.labels))
        return tagger

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """Cross-entropy of each word, or of each sentence's path where there is a CRF."""
        crf = _crf_of(model)
        if crf is None:
            return F.cross_entropy(outputs, targets.long(), reduction="sum")
        return crf.loss(outputs, counts, targets.long())

    def decode(
        self,
        model: nn.Module,
        examples: Sequence[TaggedWords],
        items: Sequence[Item],
        outputs: Sequence[Sequence[Tensor]],
    ) -> list[Prediction]:
        """The words with their places in the text, labels and probabilities, and the entities with theirs.

        A word's probability is by softmax or, under a CRF, the marginal of its paths. That of an entity or of the
        sentence is the mean of its words'; a sentence without words has nothing that could be wrong.
        """
        said = iter(self._labelled(model, _by_sentence(items, outputs)))
        return [self._prediction(example, [next(said) for _ in example.words]) for example in examples]

    def _labelled(self, model: nn.Module, sentences: Sequence[Tensor]) -> list[tuple[str, float]]:
        """Label and probability of all words, one sentence after the other."""
        if not sentences:
            return []
        flat, crf = torch.cat(list(sentences)), _crf_of(model)
        if crf is None:
            probabilities, numbers = flat.softmax(-1).max(-1)
        else:
            lengths, flat = [len(sentence) for sentence in sentences], flat.to(next(crf.parameters()).device)
            numbers = torch.tensor(list(chain.from_iterable(crf.decode(flat, lengths))))
            probabilities = crf.marginals(flat, lengths).cpu().gather(-1, numbers[:, None]).squeeze(-1)
        return [(self.labels[number], p) for number, p in zip(numbers.tolist(), probabilities.tolist(), strict=True)]

    def _prediction(self, example: TaggedWords, said: Sequence[tuple[str, float]]) -> Prediction:
        labels, probabilities = [label for label, _ in said], [probability for _, probability in said]
        if self.finds_entities:
            labels, _ = repair(labels)
        found = []
        for type_, first, past in entities(labels) if self.finds_entities else []:
            start, end = example.spans[first][0], example.spans[past - 1][1]
            place = {"type": type_, "text": example.text[start:end], "start": start, "end": end}
            found.append({**place, "probability": _mean(probabilities[first:past])})
        words = {"words": list(example.words), "spans": [list(span) for span in example.spans], "labels": labels}
        sure = {"probability": _mean(probabilities), "probabilities": probabilities}
        return {**words, **sure, "entities": found}

    def said(self, prediction: Prediction) -> str:
        """The words that are tagged."""
        return tagged_words(prediction["words"], prediction["labels"])

    def score(self, examples: Sequence[TaggedWords], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """F1, precision and recall of entities, and the accuracy of words."""
        return self.rescorer(examples, predictions)(np.arange(len(examples)))

    def rescorer(self, examples: Sequence[TaggedWords], predictions: Sequence[Prediction]) -> Rescorer:
        """As `score`, from the counts of each sentence."""
        truth, guess = self._tags(examples, predictions)
        words = _word_counts(truth, guess)
        found = entity_counts(truth, guess) if self.finds_entities else words[:, [0, 1, 1]]

        def rescored(chosen: NDArray[np.int64]) -> Mapping[str, float]:
            right, total = words[chosen].sum(axis=0).tolist()
            _, precision, recall, f1, _ = LabelScores.of("", *found[chosen].sum(axis=0).tolist())
            return {"f1": f1, "precision": precision, "recall": recall, "accuracy": right / total if total else nan}

        return rescored

    def blind_guess(self, examples: Sequence[TaggedWords]) -> tuple[str, Sequence[Prediction]]:
        """The commonest tag for every word, which is O where there are entities."""
        ((tag, _),) = Counter(chain.from_iterable(example.tags or () for example in examples)).most_common(1)
        tag = "O" if self.finds_entities else tag
        return tag, [{"labels": [tag] * len(example.words)} for example in examples]

    def details(self, examples: Sequence[TaggedWords], predictions: Sequence[Prediction]) -> Sequence[Detail]:
        """Which words are taken for which others, and each type of entity, or each label, by itself."""
        truth, guess = self._tags(examples, predictions)
        flat = [*chain.from_iterable(truth)], [*chain.from_iterable(guess)]
        if self.finds_entities:
            kinds = list(dict.fromkeys(_kind(label) for label in self.labels))
            true, said = ([_kind(tag) for tag in tags] for tags in flat)
            confused = confusion_table(true, said, kinds, "type of a word")
            scores, columns = entity_scores(truth, guess).per_type, ("type", "precision", "recall", "f1", "entities")
            return confused, Detail("by type", columns, [tuple(one) for one in scores])
        by_label = per_label(*flat, all_labels(self.labels, flat[0]))
        columns = ("label", "precision", "recall", "f1", "words")
        return confusion_table(*flat, self.labels, "tag"), Detail("by label", columns, [tuple(one) for one in by_label])

    def _tags(
        self, examples: Sequence[TaggedWords], predictions: Sequence[Prediction]
    ) -> tuple[list[Tags], list[Tags]]:
        """The true and the guessed tags; beside entities a true tag of another scheme counts as one of its own."""
        truth: list[Tags] = [example.tags or () for example in examples]
        if self.finds_entities:
            truth = [[tag if _is_iob(tag) else f"B-{tag}" for tag in tags] for tags in truth]
        return truth, [prediction["labels"] for prediction in predictions]

    @property
    def architecture(self) -> str | None:  # type: ignore[override]
        """Hugging Face has such a class for a linear layer over the last states only."""
        return "TokenClassification" if self.head == "linear" and not self.features else None

    @property
    def finds_entities(self) -> bool:
        """Whether the labels are O, B-X and I-X, and not plain ones such as parts of speech."""
        return all(map(_is_iob, self.labels))

    @property
    def _has_crf(self) -> bool:
        return self.head.endswith("crf")


def _crf_of(model: nn.Module) -> Crf | None:
    """That of a tagger, or of an exported one."""
    crf = getattr(model, "crf", None)
    assert crf is None or isinstance(crf, Crf)
    return crf


def _is_iob(tag: str) -> bool:
    return tag == "O" or tag[:2] in ("B-", "I-")


def _kind(tag: str) -> str:
    """The type of the entity that a word belongs to, or O."""
    return tag if tag == "O" else tag[2:]


def _word_counts(truth: Sequence[Tags], guess: Sequence[Tags]) -> NDArray[np.int64]:
    """Counts (N, 2): the words of each sentence whose tag is right, and all of them."""
    require_pairs(truth, guess)
    pairs = [list(zip(*both, strict=True)) for both in zip(truth, guess, strict=True)]
    return np.array([(sum(true == said for true, said in pair), len(pair)) for pair in pairs], dtype=np.int64)


def _mean(probabilities: Sequence[float]) -> float:
    return sum(probabilities) / len(probabilities) if probabilities else 1.0


def _pieces(words: int, encoding: Encoding, unknown: int) -> tuple[list[int], list[int]]:
    """The pieces of a sentence, and where each word starts; a word without any piece is unknown, so that none is lost.

    Such words have only characters that the tokenizer drops, as a zero-width space.
    """
    by_word: list[list[int]] = [[] for _ in range(words)]
    for piece, word in zip(encoding.ids, encoding.word_ids, strict=True):
        assert word is not None  # only special tokens belong to no word
        by_word[word].append(piece)
    filled = [pieces or [unknown] for pieces in by_word]
    return list(chain.from_iterable(filled)), list(accumulate(map(len, filled[:-1]), initial=0))


def _by_sentence(items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """The outputs (words, K) of each sentence that has words."""
    parts = zip(items, (output for (output,) in outputs), strict=True)
    return [_joined(list(group)) for _, group in groupby(parts, key=lambda part: part[0].example)]


def _joined(parts: Sequence[tuple[Item, Tensor]]) -> Tensor:
    """One output a word, from the window that shows the most around it."""
    if len(parts) == 1:
        return parts[0][1]
    shown: defaultdict[int, list[tuple[range, Tensor]]] = defaultdict(list)
    for item, output in parts:
        (window,) = item.windows
        for (word, _), row, values in zip(item.spans, window.rows, output, strict=True):
            shown[word].append((range(-row, len(window.ids) - row), values))  # the window, counted from the word
    ways = (shown[word] for word in sorted(shown))
    return torch.stack([way[home([window for window, _ in way], 0)][1] for way in ways])
