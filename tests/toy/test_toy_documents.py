"""Stories are coherent, alike in both languages, and need more than the word before."""

from random import Random

import pytest
import tokenizers

from heedful.toy import documents
from heedful.toy.baselines import bigram_accuracy, most_common_word, next_sentence_accuracy
from heedful.toy.tasks import stories
from heedful.toy.world import ANIMALS, JOBS, SEEN_NAMES, UNSEEN_NAMES

TRAIN, HELDOUT = stories("train", 400), stories("heldout", 80)


def test_both_languages_tell_the_same_story() -> None:
    for english, chinese in zip(TRAIN["en"], TRAIN["zh"], strict=True):
        assert len(english) == len(chinese)
        for line_en, line_zh in zip(english, chinese, strict=True):
            people = [{n for n in SEEN_NAMES if n[side] in line} for side, line in enumerate((line_en, line_zh))]
            assert people[0] == people[1]


def test_a_story_keeps_to_one_trade_one_animal_and_three_names() -> None:
    for document in TRAIN["en"]:
        words = set(" ".join(document).replace(".", " ").replace(",", " ").replace(":", " ").split())
        trades = [{job.title.en} | {word.en for word in (*job.tools, *job.goods)} for job in JOBS]
        assert sum(bool(words & trade) for trade in trades) == 1
        assert sum(animal.kind.en in words for animal in ANIMALS) == 1
        assert 2 <= sum(name.en in " ".join(document) for name in SEEN_NAMES) <= 3


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_hero_of_a_story_is_named_again_and_again(language: str) -> None:
    side = ("en", "zh").index(language)
    for document in HELDOUT[language]:
        assert max("\n".join(document).count(name[side]) for name in UNSEEN_NAMES) >= 3


@pytest.mark.parametrize("language", ["en", "zh"])
def test_people_of_heldout_stories_are_new(language: str) -> None:
    side = ("en", "zh").index(language)
    train, heldout = str(TRAIN[language]), str(HELDOUT[language])
    assert not any(name[side] in heldout for name in SEEN_NAMES)
    assert not any(name[side] in train for name in UNSEEN_NAMES)


def test_a_vocabulary_of_the_training_stories_spells_the_unseen_people() -> None:
    library = tokenizers.BertWordPieceTokenizer(lowercase=True)
    library.train_from_iterator([documents.as_text(TRAIN[language]) for language in TRAIN], show_progress=False)
    for language in HELDOUT:
        assert "[UNK]" not in library.encode(documents.as_text(HELDOUT[language])).tokens


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_word_before_tells_little_and_the_sentence_before_tells_much(language: str) -> None:
    """A bigram model must leave room for twice its accuracy; the next sentence must be recognisable."""
    train, heldout = TRAIN[language], HELDOUT[language]
    assert most_common_word(train, heldout) < bigram_accuracy(train, heldout) < 0.45
    assert next_sentence_accuracy(train, heldout, Random(0)) > 0.6


def test_text_has_a_sentence_a_line_and_an_empty_line_between_documents() -> None:
    assert documents.as_text([["A b.", "C."], ["D."]]) == "A b.\nC.\n\nD.\n"
