"""Which words name a person, a place or an animal? All three draw on the same names; only the sentence tells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import accuracy
from heedful.toy.patterns import SLOT, read
from heedful.toy.task import Task
from heedful.toy.world import ANIMALS, JOBS, Word, draw_people

KINDS = ("PER", "LOC", "ANI")
PATTERNS = (
    Word("{PER} took {ANI} to {LOC} .", "{PER}带{ANI}去{LOC}。"),
    Word("In {LOC} , {ANI} {sound} at {PER} .", "在{LOC}，{ANI}朝着{PER}，{sound}。"),
    Word(
        "The road to {LOC} was long , so {ANI} {sound} and {PER} sang .",
        "去{LOC}的路很长，{ANI}在{sound}，{PER}唱起歌来。",
    ),
    Word("{PER} , a {job} , bought {ANI} in {LOC} .", "{PER}是{job}，在{LOC}买下{ANI}。"),
    Word("{ANI} ate {food} while {PER} wrote a letter to {LOC} .", "{ANI}吃{food}时，{PER}往{LOC}写信。"),
    Word("Near {LOC} the {job} {PER} fed {ANI} .", "{LOC}附近，名叫{PER}的{job}喂了{ANI}。"),
    Word("{LOC} lies by the sea , where {PER} walks {ANI} .", "{LOC}靠着海，{PER}在那里遛{ANI}。"),
    Word("The {animal} {ANI} ran from {LOC} to the {job} {PER} .", "名叫{ANI}的{animal}从{LOC}跑到{PER}那里。"),
    Word("Every {job} in {LOC} , even {PER} , knew the {animal} {ANI} .", "{LOC}的每个{job}，连{PER}，都认识{ANI}。"),
    Word("{ANI} {sound} , and the {job} {PER} came back from {LOC} .", "{ANI}就{sound}，{PER}从{LOC}回来。"),
)


class Tagged(NamedTuple):
    """A sentence as tokens and IOB2 tags: a block of a CoNLL file."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def inputs(self) -> tuple[tuple[str, ...]]:
        return (self.tokens,)

    @property
    def answer(self) -> tuple[str, ...]:
        return self.tags


def group(rng: Random, language: str, names: Sequence[Word]) -> list[Tagged]:
    """A sentence three times, its names moving round: each is once a person, once a place and once an animal."""
    job, animal, pattern = rng.choice(JOBS), rng.choice(ANIMALS), rng.choice(PATTERNS).say(language)
    facts = {"job": job.title, "animal": animal.kind, "sound": animal.sound, "food": animal.food}
    slots = {slot: word.say(language) for slot, word in facts.items()}
    bearers = [name.say(language) for name in draw_people(rng, names, len(KINDS))]
    turns = (bearers[i:] + bearers[:i] for i in range(len(KINDS)))
    return [_tagged(pattern, language, slots | dict(zip(KINDS, turn, strict=True))) for turn in turns]


def _tagged(pattern: str, language: str, slots: dict[str, str]) -> Tagged:
    tokens: list[str] = []
    tags: list[str] = []
    for i, part in enumerate(SLOT.split(pattern)):
        text = slots[part] if i % 2 else part
        new = text.split() if language == "en" else list(text)
        tokens += new
        tags += _iob2(part, len(new)) if i % 2 and part in KINDS else ["O"] * len(new)
    return Tagged(tuple(tokens), tuple(tags))


def _iob2(kind: str, length: int) -> list[str]:
    return [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)


def solve(tokens: Sequence[str]) -> tuple[str, ...]:
    """Find the pattern of the sentence and tag the tokens that stand in its slots."""
    gap = " " if tokens[0].isascii() else ""
    match = read(PATTERNS, gap.join(tokens))[1]
    tags = ["O"] * len(tokens)
    for kind in KINDS:
        before, name = match.string[: match.start(kind)], match[kind]
        first = len(before.split()) if gap else len(before)
        length = len(name.split()) if gap else len(name)
        tags[first : first + length] = _iob2(kind, length)
    return tuple(tags)


def baseline(train: Sequence[Tagged], dev: Sequence[Tagged]) -> float:
    """Give each word its commonest tag in training, a new word the commonest tag of a name; accuracy inside names."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        for token, tag in zip(row.tokens, row.tags, strict=True):
            seen[token][tag] += 1
    named = Counter(tag for row in train for tag in row.tags if tag != "O").most_common(1)[0][0]
    best = {token: counts.most_common(1)[0][0] for token, counts in seen.items()}
    inside = [(token, tag) for row in dev for token, tag in zip(row.tokens, row.tags, strict=True) if tag != "O"]
    return accuracy([best.get(token, named) for token, _ in inside], [tag for _, tag in inside])


TASK = Task("tags", "conll", "accuracy inside names", 1 / 3, group, solve, baseline)
