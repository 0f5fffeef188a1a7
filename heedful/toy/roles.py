"""Who gave, who got, who watched? One sentence names all three people, and only its grammar tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from heedful.toy.paragraphs import Question, Span, baseline, sentences, starts_of
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.questions import RELATIONS, Relation
from heedful.toy.task import Task
from heedful.toy.world import JOBS, Word, draw_people

TOLD = (
    Word("{giver} gave the {thing} to {taker} while {viewer} watched.", "{viewer}看着{giver}把{thing}给了{taker}。"),
    Word(
        "While {viewer} watched, {taker} was given the {thing} by {giver}.",
        "{taker}当着{viewer}的面收到了{giver}的{thing}。",
    ),
    Word("{viewer} saw how {taker} got the {thing} from {giver}.", "{viewer}看见{taker}从{giver}那里得到了{thing}。"),
    Word(
        "To {taker} {giver} gave the {thing}, and {viewer} saw it.", "{giver}给了{taker}一件{thing}，{viewer}看见了。"
    ),
)
ASKED = {
    "giver": Word("Who gave the {thing} away?", "谁给出了{thing}？"),
    "taker": Word("Who got the {thing}?", "谁得到了{thing}？"),
    "viewer": Word("Who saw the {thing} change hands?", "谁看见了{thing}易手？"),
}
THINGS = tuple(tool for job in JOBS for tool in job.tools)


def group(rng: Random, language: str, names: Sequence[Word]) -> list[Question]:
    """A paragraph about three people, and a question for each part that one of them plays in it."""
    people, thing = draw_people(rng, names, 3), rng.choice(THINGS)
    parts = dict(zip(ASKED, rng.sample(people, 3), strict=True))
    told, place = rng.choice(TOLD), rng.randrange(3)
    others = [_other(rng, language, people, relation) for relation in rng.sample(RELATIONS, 2)]
    slots = {**parts, "thing": thing}
    between = " " if language == "en" else ""
    before = "".join(sentence + between for sentence in others[:place])
    context = between.join([*others[:place], fill_pattern(told, language, **slots), *others[place:]])
    starts = starts_of(told.say(language), {slot: word.say(language) for slot, word in slots.items()})
    return [
        Question(
            context,
            fill_pattern(asked, language, thing=thing),
            Span(parts[part].say(language), len(before) + starts[part]),
        )
        for part, asked in ASKED.items()
    ]


def _other(rng: Random, language: str, people: Sequence[Word], relation: Relation) -> str:
    """Something else about the same people."""
    slots = dict(zip("ABCabc", [*rng.sample(people, 3), *rng.sample(relation.things, 3)], strict=True))
    return fill_pattern(rng.choice(relation.told), language, **slots)


def _facts(context: str, question: str) -> tuple[str, Span, dict[str, Span]]:
    """Which part is asked about, in which sentence it is played, and who plays each part there."""
    asked, _ = read(ASKED.values(), question)
    part = next(part for part, pattern in ASKED.items() if pattern == asked)
    for sentence in sentences(context):
        try:
            match = read(TOLD, sentence.text)[1]
        except ValueError:
            continue
        return part, sentence, {part: Span(match[part], sentence.start + match.start(part)) for part in ASKED}
    raise ValueError(f"nothing in {context!r} answers {question!r}")


def solve(context: str, question: str) -> Span:
    """Read the sentence in which something is given, and see who plays the part."""
    part, _, answers = _facts(context, question)
    return answers[part]


TASK = Task("roles", "json", "exact match", 1 / 3, group, solve, baseline(_facts))
