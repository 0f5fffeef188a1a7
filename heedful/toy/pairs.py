"""Does the second sentence follow from the first? Somebody passes something on; the question is who has it now."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import accuracy, classify, pair_bag
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.task import Task
from heedful.toy.world import ANIMALS, JOBS, Word, draw_people

THINGS = tuple(tool for job in JOBS for tool in job.tools) + tuple(animal.kind for animal in ANIMALS)
EVENTS = (
    Word("{giver} gave {taker} the {thing}.", "{giver}把{thing}送给了{taker}。"),
    Word("{taker} got the {thing} from {giver}.", "{taker}从{giver}那里得到了{thing}。"),
    Word("{giver} sold the {thing} to {taker}.", "{giver}把{thing}卖给了{taker}。"),
    Word("{taker} bought the {thing} from {giver}.", "{taker}向{giver}买了{thing}。"),
    Word("The {thing} was sent to {taker} by {giver}.", "{thing}被{giver}寄给了{taker}。"),
)
NOW_OWNS = (
    Word("{who} has the {thing} now.", "{thing}现在在{who}手里。"),
    Word("The {thing} now belongs to {who}.", "{thing}现在属于{who}。"),
)
NO_LONGER_OWNS = (
    Word("{who} no longer has the {thing}.", "{thing}已经不在{who}手里。"),
    Word("The {thing} belonged to {who} before.", "{thing}以前属于{who}。"),
)


class LabelledPair(NamedTuple):
    """A row in the layout of MRPC and RTE; label 1 means that the second sentence is true."""

    label: int
    sentence1: str
    sentence2: str

    @property
    def inputs(self) -> tuple[str, str]:
        return self.sentence1, self.sentence2

    @property
    def answer(self) -> int:
        return self.label


def group(rng: Random, language: str, names: Sequence[Word]) -> list[LabelledPair]:
    """A pair and its twin with giver and taker exchanged in the first sentence."""
    who, other = draw_people(rng, names, 2)
    thing, event, claim = rng.choice(THINGS), rng.choice(EVENTS), rng.choice(NOW_OWNS + NO_LONGER_OWNS)
    said = fill_pattern(claim, language, who=who, thing=thing)
    taken = fill_pattern(event, language, giver=other, taker=who, thing=thing)
    given = fill_pattern(event, language, giver=who, taker=other, thing=thing)
    return [LabelledPair(int(claim in NOW_OWNS), taken, said), LabelledPair(int(claim in NO_LONGER_OWNS), given, said)]


def solve(sentence1: str, sentence2: str) -> int:
    """Whether the claim is about the taker and now, or about the giver and before."""
    _, event = read(EVENTS, sentence1)
    claim, about = read(NOW_OWNS + NO_LONGER_OWNS, sentence2)
    return int(about["who"] == event["taker" if claim in NOW_OWNS else "giver"])


def baseline(train: Sequence[LabelledPair], dev: Sequence[LabelledPair]) -> float:
    """Accuracy of logistic regression over the words of each side and those they share."""
    predicted = classify(
        [pair_bag(*r.inputs) for r in train], [r.label for r in train], [pair_bag(*r.inputs) for r in dev]
    )
    return accuracy(predicted, [r.label for r in dev])


TASK = Task("pairs", "tsv", "accuracy", 1 / 2, group, solve, baseline)
