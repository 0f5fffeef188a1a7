"""The same sentence in English and Chinese, whose grammars put the words in different places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import accuracy
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.task import Task
from heedful.toy.world import ANIMALS, COLOURS, JOBS, SEEN_NAMES, TOWNS, UNSEEN_NAMES, Word, draw_people, word_list

NUMBERS = word_list("two 两, three 三, four 四, five 五, six 六, seven 七")
PATTERNS = (
    Word("{name} is a {job} in {town}.", "{name}是{town}的{job}。"),
    Word("{name} {made} {goods} with the {tool} at the {place}.", "{name}在{place}用{tool}{made}{goods}。"),
    Word("The {animal} that {name} saw in {town} was {colour}.", "{name}在{town}看见的{animal}是{colour}色的。"),
    Word("Did {name} give the {tool} to {friend}?", "{name}把{tool}给{friend}了吗？"),
    Word("Where did {name} buy the {colour} {tool}?", "{colour}色的{tool}是{name}在哪里买的？"),
    Word("{name} bought {number} {animal}s from {friend}.", "{name}向{friend}买了{number}{measure}{animal}。"),
    Word("Before {name} left for {town}, {friend} fed the {animal}.", "{name}去{town}之前，{friend}喂了{animal}。"),
    Word(
        "{friend} fed the {animal} because {name} had gone to {town}.",
        "因为{name}去了{town}，所以{friend}喂了{animal}。",
    ),
    Word("The {colour} {animal} was brought to {town} by {name}.", "{colour}色的{animal}被{name}带到了{town}。"),
    Word("There is a {job} in {town} who keeps a {animal}.", "{town}有一个养{animal}的{job}。"),
    Word("{name} is taller than {friend}, the {job}.", "{name}比{job}{friend}高。"),
    Word("Which {tool} at the {place} does not belong to {name}?", "{place}里哪个{tool}不是{name}的？"),
)
_JOB_WORDS = [word for job in JOBS for word in (job.title, job.place, job.made, *job.tools, *job.goods)]
_LEXICON = dict(
    [*_JOB_WORDS, *TOWNS, *COLOURS, *NUMBERS, *SEEN_NAMES, *UNSEEN_NAMES, *(animal.kind for animal in ANIMALS)]
)
_WORD = re.compile(r"[A-Z]\w+ [A-Z]\w+|\w+")
_MEASURES = {animal.kind.en: animal.measure for animal in ANIMALS}


class Parallel(NamedTuple):
    """A sentence in both languages."""

    en: str
    zh: str

    @property
    def inputs(self) -> tuple[str]:
        return (self.en,)

    @property
    def answer(self) -> str:
        return self.zh


def group(rng: Random, language: str, names: Sequence[Word]) -> list[Parallel]:
    """One sentence; `language` makes no difference, as a row has both."""
    job, animal, (name, friend) = rng.choice(JOBS), rng.choice(ANIMALS), draw_people(rng, names, 2)
    people = {"name": name, "friend": friend, "animal": animal.kind, "measure": Word("", animal.measure)}
    trade = {"job": job.title, "place": job.place, "made": job.made}
    chance = {"tool": job.tools, "goods": job.goods, "town": TOWNS, "colour": COLOURS, "number": NUMBERS}
    slots = people | trade | {slot: rng.choice(words) for slot, words in chance.items()}
    pattern = rng.choice(PATTERNS)
    return [Parallel(fill_pattern(pattern, "en", **slots), fill_pattern(pattern, "zh", **slots))]


def solve(en: str) -> str:
    """Read the English pattern, translate what is in its slots and say it in the Chinese one."""
    pattern, match = read(PATTERNS, en)
    slots = {slot: _LEXICON[word] for slot, word in match.groupdict().items()}
    return pattern.zh.format(**slots, measure=_MEASURES.get(match.groupdict().get("animal", ""), ""))


def baseline(train: Sequence[Parallel], dev: Sequence[Parallel]) -> float:
    """Translate word by word in the English order with the full dictionary, function words left out; exact match."""
    dictionary = _LEXICON | {f"{animal.kind.en}s": animal.kind.zh for animal in ANIMALS}
    glosses = ["".join(dictionary.get(word, "") for word in _WORD.findall(row.en)) for row in dev]
    return accuracy([gloss + row.zh[-1] for gloss, row in zip(glosses, dev, strict=True)], [row.zh for row in dev])


TASK = Task("parallel", "tsv", "exact match", 0.0, group, solve, baseline, languages=("en-zh",))
