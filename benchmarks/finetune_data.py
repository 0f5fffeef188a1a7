"""Data sets that are made from others: unanswerable questions, and a split by context."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

from heedful.atomic import atomic_file, atomic_folder


def read_squad(path: Path) -> list[dict[str, Any]]:
    """The articles of a SQuAD file."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    articles: list[dict[str, Any]] = json.loads(raw)["data"]
    return articles


def first_questions(articles: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The articles with only their first `count` questions."""
    kept = []
    for article in articles:
        paragraphs = []
        for paragraph in article["paragraphs"]:
            questions = paragraph["qas"][: max(count, 0)]
            count -= len(questions)
            if questions:
                paragraphs.append({**paragraph, "qas": questions})
        if paragraphs:
            kept.append({**article, "paragraphs": paragraphs})
    return kept


def with_unanswerable(articles: list[dict[str, Any]], share: float, seed: int) -> list[dict[str, Any]]:
    """Besides its own questions, a paragraph is asked some of other paragraphs of its article, without an answer.

    Where the other paragraph's answer happens to stand in this one too, the question is left out.
    """
    rng = random.Random(seed)
    changed = []
    for article in articles:
        paragraphs = article["paragraphs"]
        changed.append({**article, "paragraphs": [_asked_more(p, paragraphs, share, rng) for p in paragraphs]})
    return changed


def _asked_more(
    paragraph: dict[str, Any], article: list[dict[str, Any]], share: float, rng: random.Random
) -> dict[str, Any]:
    own = [{**question, "is_impossible": False} for question in paragraph["qas"]]
    others = [question for other in article if other is not paragraph for question in other["qas"]]
    chosen = rng.sample(others, min(len(others), round(share * len(own))))
    moved = [
        {"id": f"{q['id']}-at-{own[0]['id']}", "question": q["question"], "answers": [], "is_impossible": True}
        for q in chosen
        if not any(answer["text"] in paragraph["context"] for answer in q["answers"])
    ]
    return {**paragraph, "qas": own + moved}


def split_by_context(articles: list[dict[str, Any]], parts: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every `parts`-th paragraph in the second half, all others in the first."""
    halves: tuple[list[Any], list[Any]] = ([], [])
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    for number, paragraph in enumerate(paragraphs):
        halves[number % parts == parts - 1].append({"title": "", "paragraphs": [paragraph]})
    return halves


def write_squad(articles: list[dict[str, Any]], path: Path) -> Path:
    """Write articles as a SQuAD file, whole or not at all."""
    with atomic_file(path) as file:
        json.dump({"version": "made", "data": articles}, file, ensure_ascii=False)
    return path


def make_data(data: Path, folder: Path) -> Path:
    """All the made files in `folder`, which is there with all of them or not at all; made once."""
    if folder.is_dir():
        return folder
    train = first_questions(read_squad(data / "squad1.1" / "practice_train.json.gz"), 5000)
    dev = with_unanswerable(read_squad(data / "squad1.1" / "practice_dev.json"), 0.5, seed=2)
    cmrc_train, cmrc_dev = split_by_context(read_squad(data / "cmrc2018" / "trial.json"), 5)
    made = {
        "squad_train": train,
        "squad2_train": with_unanswerable(train, 0.5, seed=1),
        "squad2_tune": dev[::2],
        "squad2_dev": dev[1::2],
        "cmrc_train": cmrc_train,
        "cmrc_dev": cmrc_dev,
    }
    with atomic_folder(folder) as new:
        for name, articles in made.items():
            write_squad(articles, new / f"{name}.json")
    return folder
