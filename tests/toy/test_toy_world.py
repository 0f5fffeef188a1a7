"""The lexicon is consistent: names are names only, and every word has one translation."""

import re

from heedful.toy import choices, documents, pairs, parallel, questions, roles, sentiment, similarity, tags
from heedful.toy.world import ANIMALS, COLOURS, JOBS, SEEN_NAMES, TOWNS, UNSEEN_NAMES, Word, is_she


def lexicon() -> list[Word]:
    trades = [word for job in JOBS for word in (job.title, job.place, job.made, *job.tools, *job.goods)]
    beasts = [word for animal in ANIMALS for word in (animal.kind, animal.sound, animal.food)]
    return [*trades, *beasts, *TOWNS, *COLOURS]


def patterns() -> list[Word]:
    relations = [p for relation in questions.RELATIONS for p in (*relation.told, relation.asked)]
    owned = [*pairs.EVENTS, *pairs.NOW_OWNS, *pairs.NO_LONGER_OWNS]
    played = [*roles.TOLD, *roles.ASKED.values()]
    chosen = [*choices.CONTEXTS, choices.START, choices.ENDING]
    rest = [*sentiment.PATTERNS, *similarity.PATTERNS, *tags.PATTERNS, *parallel.PATTERNS]
    return [*relations, *owned, *played, *chosen, *rest, *(line for step in documents.DAY for line in step)]


def test_characters_of_names_stand_for_nothing_else() -> None:
    in_names = {c for name in SEEN_NAMES + UNSEEN_NAMES for c in name.zh}
    adjectives = (*sentiment.GOOD, *sentiment.BAD, *sentiment.THINGS)
    elsewhere = {c for word in (*lexicon(), *adjectives, *patterns()) for c in word.zh}
    assert not in_names & elsewhere


def test_every_english_word_has_one_chinese_word_and_back() -> None:
    for side in (0, 1):
        words = [word[side] for word in lexicon()]
        assert len(words) == len(set(words)), sorted(w for w in words if words.count(w) > 1)


def test_unseen_people_have_new_names_made_of_known_parts() -> None:
    assert not set(SEEN_NAMES) & set(UNSEEN_NAMES)
    assert {part for n in UNSEEN_NAMES for part in n.en.split()} <= {part for n in SEEN_NAMES for part in n.en.split()}
    assert {(i, c) for n in UNSEEN_NAMES for i, c in enumerate(n.zh)} <= {
        (i, c) for n in SEEN_NAMES for i, c in enumerate(n.zh)
    }


def test_both_pronouns_are_used_among_seen_and_unseen() -> None:
    for names in (SEEN_NAMES, UNSEEN_NAMES):
        assert 0.4 < sum(map(is_she, names)) / len(names) < 0.6


def test_both_sides_of_a_pattern_have_the_same_slots() -> None:
    # Measure words exist in Chinese only; a tool or job that one language leaves out is listed here.
    only_one = {"measure"}
    for en, zh in (*parallel.PATTERNS, *pairs.EVENTS, *sentiment.PATTERNS, *similarity.PATTERNS):
        slots = [set(re.findall(r"\{(\w+)\}", text)) - only_one for text in (en, zh)]
        assert slots[0] == slots[1]
