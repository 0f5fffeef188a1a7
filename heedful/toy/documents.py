"""Stories: one day of one person, a sentence a line, told alike in both languages.

A story keeps to its people, its trade, its animal and its town and goes from dawn to night, so that a word that is
missing, or a sentence that is out of place, can be told from the rest of the story but not from the word before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from heedful.toy.patterns import fill_pattern
from heedful.toy.world import ANIMALS, COLOURS, JOBS, LANGUAGES, TOWNS, Word, draw_people, is_she

Document = list[str]

# A day, step by step; each step can be told in several ways.
DAY: tuple[tuple[Word, ...], ...] = (
    (
        Word("{hero} was a {job} in {town}.", "{hero}是{town}的{job}。"),
        Word("In {town} lived {hero}, a {job}.", "{town}住着{job}{hero}。"),
    ),
    (
        Word("The {job} of {town} had a {colour} {animal}.", "{town}的{job}有一{measure}{colour}{animal}。"),
        Word("{hero} kept a {colour} {animal} in {town}.", "{hero}在{town}养{colour}{animal}。"),
    ),
    (
        Word("At dawn {hero} took the {colour} {animal} to the {place}.", "早上{hero}带{colour}{animal}去{place}。"),
        Word(
            "The {colour} {animal} followed {hero} to the {place} at dawn.", "早晨{colour}{animal}跟{hero}去{place}。"
        ),
    ),
    (
        Word("{hero} {made} {goods} at the {place} with the {tool}.", "{hero}在{place}用{tool}{made}{goods}。"),
        Word("At the {place} {they} took the {tool} and {made} {goods}.", "{they}在{place}拿{tool}{made}{goods}。"),
    ),
    (
        Word("{friend} noticed the {tool} and bought {goods} from {hero}.", "{friend}见了{tool}，向{hero}买{goods}。"),
        Word("{hero} sold {goods} to {friend}.", "{hero}卖{goods}给{friend}。"),
    ),
    (
        Word("At noon {hero} and {friend} gave the {animal} {food}.", "中午{hero}和{friend}给{animal}吃{food}。"),
        Word(
            "{friend} brought {food} for the {animal} of {hero} at noon.", "中饭时{friend}送{food}给{hero}的{animal}。"
        ),
    ),
    (
        Word("Then the {tool} of {hero} broke and the {animal} {sound}.", "{hero}的{tool}坏了，{animal}{sound}。"),
        Word("The {animal} {sound}, for {hero} had lost the {tool}.", "{animal}{sound}，{hero}丢{tool}了。"),
    ),
    (
        Word(
            "{hero} had no {tool}, so {friend} lent {hero} the {spare}.",
            "{hero}没有{tool}，{friend}借{spare}给{hero}。",
        ),
        Word("Instead of the {tool} {hero} got the {spare} from {friend}.", "不用{tool}，{hero}向{friend}借{spare}。"),
    ),
    (
        Word("With the {spare} {hero} {made} {gift} for {friend}.", "{hero}用{spare}为{friend}{made}{gift}。"),
        Word("Until evening {they} used the {spare} and {made} {gift}.", "下午{they}拿{spare}{made}{gift}。"),
    ),
    (
        Word("{hero} gave {friend} {gift} and the {spare}.", "{hero}送{gift}和{spare}给{friend}。"),
        Word("{friend} thanked {hero} for {gift}.", "{friend}为{gift}谢{hero}。"),
    ),
    (
        Word("At dusk {hero} closed the {place} and called the {animal}.", "晚间{hero}关{place}，叫{animal}。"),
        Word("The {animal} and {hero} left the {place} at dusk.", "晚上{animal}和{hero}出{place}。"),
    ),
    (
        Word("At night the {animal} slept beside {hero}.", "夜里{animal}和{hero}睡了。"),
        Word("{hero} and the {animal} dreamt of {food} at night.", "夜间{hero}和{animal}梦到{food}。"),
    ),
)
_SKIPPED = 0.15  # how often a step after the first two is left out


def _cast(rng: Random, names: Sequence[Word]) -> dict[str, Word]:
    """The people and things of one story."""
    hero, friend = draw_people(rng, names, 2)
    job, animal = rng.choice(JOBS), rng.choice(ANIMALS)
    tool, spare = rng.sample(job.tools, 2)
    goods, gift = rng.sample(job.goods, 2)
    people = {"hero": hero, "friend": friend, "they": Word("she", "她") if is_she(hero) else Word("he", "他")}
    trade = {"job": job.title, "place": job.place, "made": job.made, "tool": tool, "spare": spare}
    beast = {"animal": animal.kind, "sound": animal.sound, "food": animal.food, "measure": Word("", animal.measure)}
    chance = {"town": TOWNS, "colour": COLOURS}
    facts = {slot: rng.choice(words) for slot, words in chance.items()}
    return people | trade | beast | facts | {"goods": goods, "gift": gift}


def story(rng: Random, names: Sequence[Word]) -> dict[str, Document]:
    """One story in both languages, sentence by sentence the same."""
    cast = _cast(rng, names)
    steps = [step for i, step in enumerate(DAY) if i < 2 or rng.random() >= _SKIPPED]
    told = [rng.choice(step) for step in steps]
    return {language: [_capital(fill_pattern(line, language, **cast)) for line in told] for language in LANGUAGES}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def generate(rng: Random, count: int, names: Sequence[Word]) -> dict[str, list[Document]]:
    """`count` stories about people of those names, in both languages."""
    stories = [story(rng, names) for _ in range(count)]
    return {language: [each[language] for each in stories] for language in LANGUAGES}


def as_text(documents: Sequence[Document]) -> str:
    """A sentence a line and an empty line between documents."""
    return "\n\n".join("\n".join(document) for document in documents) + "\n"
