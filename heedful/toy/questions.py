"""Who works, lives, keeps what? Each sentence speaks of all three people, so finding the sentence is not enough."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from heedful.toy.paragraphs import Question, Span, baseline, sentences, starts_of
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.task import Task
from heedful.toy.world import ANIMALS, JOBS, TOWNS, Word, draw_people


class Relation(NamedTuple):
    """Something that holds between a person and a thing: how it is told, asked, and of which things."""

    told: tuple[Word, ...]
    asked: Word
    things: tuple[Word, ...]


WORK = Relation(
    (
        Word("{A} works at the {a}, {B} at the {b} and {C} at the {c}.", "{A}在{a}工作，{B}在{b}工作，{C}在{c}工作。"),
        Word(
            "At the {a} works {A}, at the {b} {B} and at the {c} {C}.", "在{a}工作的是{A}，在{b}的是{B}，在{c}的是{C}。"
        ),
    ),
    Word("Where does {A} work?", "{A}在哪里工作？"),
    tuple(job.place for job in JOBS),
)
HOME = Relation(
    (
        Word("{A} lives in {a}, {B} in {b} and {C} in {c}.", "{A}住在{a}，{B}住在{b}，{C}住在{c}。"),
        Word("{a} is home to {A}, {b} to {B} and {c} to {C}.", "{a}是{A}的家，{b}是{B}的家，{c}是{C}的家。"),
    ),
    Word("Where does {A} live?", "{A}住在哪里？"),
    TOWNS,
)
PET = Relation(
    (
        Word("{A} keeps the {a}, {B} the {b} and {C} the {c}.", "{A}养{a}，{B}养{b}，{C}养{c}。"),
        Word("The {a} belongs to {A}, the {b} to {B} and the {c} to {C}.", "{a}属于{A}，{b}属于{B}，{c}属于{C}。"),
    ),
    Word("Which animal does {A} keep?", "{A}养什么动物？"),
    tuple(animal.kind for animal in ANIMALS),
)
RELATIONS = (WORK, HOME, PET)
_PEOPLE, _THINGS = "ABC", "abc"


def group(rng: Random, language: str, names: Sequence[Word]) -> list[Question]:
    """A paragraph about three people, and one question asked about each of them."""
    people, topic = draw_people(rng, names, 3), rng.choice(RELATIONS)
    relations = rng.sample(RELATIONS, len(RELATIONS))
    context, found = "", dict[Word, Span]()
    for relation in relations:
        order, things = rng.sample(people, 3), rng.sample(relation.things, 3)
        slots = dict(zip(_PEOPLE + _THINGS, order + things, strict=True))
        pattern = rng.choice(relation.told)
        context += " " if context and language == "en" else ""
        if relation is topic:
            starts = starts_of(pattern.say(language), {slot: word.say(language) for slot, word in slots.items()})
            found = {
                p: Span(t.say(language), len(context) + starts[s])
                for p, t, s in zip(order, things, _THINGS, strict=True)
            }
        context += fill_pattern(pattern, language, **slots)
    return [Question(context, fill_pattern(topic.asked, language, A=person), span) for person, span in found.items()]


def _facts(context: str, question: str) -> tuple[str, Span, dict[str, Span]]:
    """Who is asked about, in which sentence that is told, and the answer for each person there."""
    asked, who = read([relation.asked for relation in RELATIONS], question)
    told = next(relation.told for relation in RELATIONS if relation.asked == asked)
    for sentence in sentences(context):
        try:
            match = read(told, sentence.text)[1]
        except ValueError:
            continue
        pairs = zip(_PEOPLE, _THINGS, strict=True)
        return who["A"], sentence, {match[p]: Span(match[t], sentence.start + match.start(t)) for p, t in pairs}
    raise ValueError(f"nothing in {context!r} answers {question!r}")


def solve(context: str, question: str) -> Span:
    """Read the sentence that tells what is asked, and look the person up."""
    person, _, answers = _facts(context, question)
    return answers[person]


TASK = Task("questions", "json", "exact match", 1 / 3, group, solve, baseline(_facts))
