"""The two promises of every toy task: words alone are worth no more than chance, and rules solve it."""

from collections import Counter, defaultdict

import pytest

from heedful.toy.bag_of_words import pair_bag, words
from heedful.toy.baselines import task_baseline
from heedful.toy.paragraphs import Span
from heedful.toy.tasks import TASKS, rows
from heedful.toy.world import SEEN_NAMES, UNSEEN_NAMES
from heedful.toy.writer import Size

SIZE = Size(documents=0, heldout=0, train=600, dev=240)
CASES = [(name, language) for name, task in TASKS.items() for language in task.languages]


@pytest.mark.parametrize(("task", "language"), CASES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_words_alone_stay_near_chance_and_rules_get_everything(task: str, language: str, seed: int) -> None:
    found = task_baseline(task, language, SIZE, seed)
    assert abs(found.baseline - found.chance) <= 0.1
    assert found.solver == 1.0


@pytest.mark.parametrize(("task", "language"), CASES)
def test_the_solver_reads_training_rows_too(task: str, language: str) -> None:
    assert TASKS[task].solved(rows(task, language, "train", 500)) == 1.0


@pytest.mark.parametrize(("task", "language"), CASES)
def test_dev_is_about_people_who_are_not_in_training(task: str, language: str) -> None:
    train, dev = (str(rows(task, language, split, 300)) for split in ("train", "dev"))
    side = 1 if language == "zh" else 0
    seen, unseen = {name[side] for name in SEEN_NAMES}, {name[side] for name in UNSEEN_NAMES}
    if (task, language) == ("tags", "en"):
        seen, unseen = ({str(tuple(name.split()))[1:-1] for name in names} for names in (seen, unseen))
    elif task == "tags":
        seen, unseen = ({str(tuple(name))[1:-1] for name in names} for names in (seen, unseen))
    assert any(name in train for name in seen) and any(name in dev for name in unseen)
    assert not any(name in train for name in unseen) and not any(name in dev for name in seen)


@pytest.mark.parametrize("task", ["sentiment", "pairs", "similarity"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_bag_comes_with_every_answer_equally_often(task: str, language: str) -> None:
    """The reason for the first promise: no function of the counts, linear or not, can beat chance."""
    answers: defaultdict[frozenset[tuple[str, int]], Counter[object]] = defaultdict(Counter)
    for row in rows(task, language, "dev", 240):
        counted = pair_bag(*row.inputs) if task != "sentiment" else Counter(words(row.sentence))
        answers[frozenset(counted.items())][row.answer] += 1
    possible = {answer for counts in answers.values() for answer in counts}
    assert len(possible) == (4 if task == "similarity" else 2)
    assert all(set(counts) == possible and len(set(counts.values())) == 1 for counts in answers.values())


@pytest.mark.parametrize("task", ["questions", "roles"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_answers_stand_where_they_are_said_to_stand(task: str, language: str) -> None:
    for row in rows(task, language, "train", 300):
        assert row.context[row.span.start :].startswith(row.span.text)
        assert isinstance(row.span, Span)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_tags_are_iob2(language: str) -> None:
    for row in rows("tags", language, "train", 300):
        assert len(row.tokens) == len(row.tags)
        for before, tag in zip(("O", *row.tags), row.tags, strict=False):
            assert not tag.startswith("I-") or before[2:] == tag[2:]
        assert Counter(tag for tag in row.tags if tag.startswith("B-")) == {"B-PER": 1, "B-LOC": 1, "B-ANI": 1}


def test_a_sentence_the_world_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="no pattern"):
        TASKS["sentiment"].solve("This is no sentence of the toy world.")


def test_the_same_arguments_give_the_same_rows_and_another_seed_others() -> None:
    assert rows("pairs", "en", "train", 50, seed=3) == rows("pairs", "en", "train", 50, seed=3)
    assert rows("pairs", "en", "train", 50, seed=3) != rows("pairs", "en", "train", 50, seed=4)
