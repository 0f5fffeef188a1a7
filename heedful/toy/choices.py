"""How does the sentence end? Each ending fits one of four trades; whose turn it is tells which."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import Bag, accuracy, choose, pair_bag
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.task import Task
from heedful.toy.world import JOBS, Job, Word, draw_people

CONTEXTS = (
    Word("{A} is a {a}, {B} is a {b}, {C} is a {c} and {D} is a {d}.", "{A}是{a}，{B}是{b}，{C}是{c}，{D}是{d}。"),
    Word(
        "The {a} is {A}, the {b} is {B}, the {c} is {C} and the {d} is {D}.", "{a}叫{A}，{b}叫{B}，{c}叫{C}，{d}叫{D}。"
    ),
)
START = Word("All morning {who}", "整个上午{who}都")
ENDING = Word("{made} {goods} with the {tool}.", "在用{tool}来{made}些{goods}。")
_PEOPLE, _TRADES = "ABCD", "abcd"


class Choice(NamedTuple):
    """A row in the layout of CODAH and SWAG: the beginning of a sentence and its possible endings."""

    context: str
    question: str
    choices: tuple[str, ...]
    label: int

    @property
    def inputs(self) -> tuple[str, str, tuple[str, ...]]:
        return self.context, self.question, self.choices

    @property
    def answer(self) -> int:
        return self.label


def _ending(rng: Random, language: str, job: Job) -> str:
    return fill_pattern(ENDING, language, made=job.made, goods=rng.choice(job.goods), tool=rng.choice(job.tools))


def group(rng: Random, language: str, names: Sequence[Word]) -> list[Choice]:
    """Four people with four trades, and the same four endings for each of them."""
    people, jobs = draw_people(rng, names, 4), rng.sample(JOBS, 4)
    slots = dict(zip(_PEOPLE + _TRADES, people + [job.title for job in jobs], strict=True))
    context = fill_pattern(rng.choice(CONTEXTS), language, **slots)
    order = rng.sample(range(4), 4)
    endings = tuple(_ending(rng, language, jobs[i]) for i in order)
    starts = [fill_pattern(START, language, who=person) for person in people]
    return [Choice(context, start, endings, order.index(i)) for i, start in enumerate(starts)]


def solve(context: str, question: str, choices: Sequence[str]) -> int:
    """Look the person's trade up in the context and find the ending with one of its tools."""
    trades = read(CONTEXTS, context)[1]
    who = read([START], question)[1]["who"]
    title = next(trades[t] for p, t in zip(_PEOPLE, _TRADES, strict=True) if trades[p] == who)
    tools = {word for job in JOBS if title in job.title for tool in job.tools for word in tool}
    return next(i for i, ending in enumerate(choices) if read([ENDING], ending)[1]["tool"] in tools)


def _candidates(row: Choice) -> list[Bag]:
    start = f"{row.context} {row.question}"
    return [pair_bag(start, ending) for ending in row.choices]


def baseline(train: Sequence[Choice], dev: Sequence[Choice]) -> float:
    """Choose an ending by its words, those of the context, and those they share."""
    picked = choose([_candidates(r) for r in train], [r.label for r in train], [_candidates(r) for r in dev])
    return accuracy(picked, [r.label for r in dev])


TASK = Task("choices", "jsonl", "accuracy", 1 / 4, group, solve, baseline)
