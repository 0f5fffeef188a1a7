"""Answers in long texts: a paragraph of the toy world hidden at random places among its stories.

    make quickstart; heedful toy WORLD --size large; heedful toy OTHER --seed 5
    python benchmarks/long_answers.py plant quickstart/run/model WORLD/roles.en/train.json -o long_train.json
    heedful finetune answer --model quickstart/answerer-pretrained --train long_train.json \\
        --dev WORLD/roles.en/dev.json --lr 1e-3 --epochs 2 --dropout 0 --max-length 128 --stride 64 -o RUN
    python benchmarks/long_answers.py measure RUN OTHER/roles.en/dev.json

`plant` makes training data of it, in texts of a few windows: so the answerer meets paragraphs anywhere in a window, and
windows without an answer. `measure` asks one question of each of 50 texts of 20,000 tokens; right is the very place,
character by character.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from results_file import RESULTS, Table, write_results

from heedful.atomic import atomic_file
from heedful.checkpoints.folder import read_folder
from heedful.data.labelled.dataset import Question
from heedful.data.labelled.squad import read_questions
from heedful.inference.load import load_embedder, model_path
from heedful.text.tokenizer import Tokenizer
from heedful.toy.roles import THINGS
from heedful.toy.tasks import stories
from heedful.toy.world import SEEN_NAMES, UNSEEN_NAMES

ASKABLE = [word.en for word in (*SEEN_NAMES, *UNSEEN_NAMES, *THINGS)]
STORIES = 2000
TRAINED = (
    "The answerer is that of the quickstart (two layers, width 128), trained further on 20,000 questions whose "
    "paragraphs were planted in two to three windows, as benchmarks/long_answers.py tells at its top; names and "
    "stories are other ones."
)
PARTS = 5  # of a text, by which what is found is counted


@dataclass(frozen=True)
class Hideout:
    """Stories to hide a paragraph among, and how many tokens each has."""

    texts: Sequence[str]
    sizes: Sequence[int]

    @classmethod
    def of(cls, split: str, tokenizer: Tokenizer, seed: int) -> Hideout:
        """The stories of a split."""
        texts = [" ".join(story) for story in stories(split, STORIES, seed)["en"]]
        return cls(texts, [len(encoding) for encoding in tokenizer.pieces(texts)])

    def hide(self, question: Question, tokens: int, rng: random.Random) -> Question:
        """The question about its context with so many tokens of stories before and after it.

        No story speaks of the person or thing asked about: there must be one right answer.
        """
        asked = [word for word in ASKABLE if word in question.question]
        told: list[str] = []
        while tokens > 0:
            number = rng.randrange(len(self.texts))
            if not any(word in self.texts[number] for word in asked):
                told.append(self.texts[number])
                tokens -= self.sizes[number]
        place = rng.randrange(len(told) + 1)
        before = "".join(f"{text} " for text in told[:place])
        answers = tuple(replace(answer, start=answer.start + len(before)) for answer in question.answers)
        context = " ".join([before + question.context, *told[place:]])
        return replace(question, context=context, answers=answers)


def plant(arguments: argparse.Namespace) -> None:
    """Write training questions whose paragraphs are hidden in longer texts."""
    rng, tokenizer = random.Random(arguments.seed), _tokenizer(arguments.model)
    hideout = Hideout.of("train", tokenizer, arguments.seed)
    hidden = [hideout.hide(q, arguments.tokens, rng) for q in read_questions(arguments.questions).examples]
    with atomic_file(arguments.output) as file:
        file.write(json.dumps({"version": "1.1", "data": [{"title": "toy", "paragraphs": [*map(_paragraph, hidden)]}]}))
    print(f"{len(hidden):,} questions -> {arguments.output}")


def measure(arguments: argparse.Namespace) -> None:
    """Ask the long texts, and for comparison the paragraphs by themselves."""
    rng, model = random.Random(arguments.seed), load_embedder(arguments.model)
    hideout = Hideout.of("heldout", _tokenizer(arguments.model), arguments.seed)
    short = rng.sample(list(read_questions(arguments.questions).examples), arguments.texts)
    long = [hideout.hide(question, arguments.tokens, rng) for question in short]
    alone = _right(short, model.predict(short))
    began = time.perf_counter()
    found = _right(long, model.predict(long))
    seconds = time.perf_counter() - began
    rows = [["the paragraph alone", len(short), sum(alone)]]
    for part in range(PARTS):
        here = [i for i, q in enumerate(long) if PARTS * q.answers[0].start // len(q.context) == part]
        rows.append([f"part {part + 1} of {PARTS} of the text", len(here), sum(found[i] for i in here)])
    rows.append([f"anywhere in {arguments.tokens:,} tokens", len(long), sum(found)])
    write_results(
        arguments.output,
        "Answers in long texts",
        f"Toy-world paragraphs planted at random places in {arguments.tokens:,} tokens of toy stories, one question "
        "each; found means the very place of the answer.",
        [Table(["where the paragraph is", "questions", "found"], rows)],
        [f"{sum(found) / len(found):.0%} found; {seconds / len(long):.1f} s for a text.", TRAINED],
        f"measure RUN roles.en/dev.json --texts {arguments.texts} --tokens {arguments.tokens} --seed {arguments.seed}",
    )


def _right(questions: Sequence[Question], predictions: Sequence[dict[str, object]]) -> list[bool]:
    truths = [(question.answers[0].text, question.answers[0].start) for question in questions]
    return [(p["answer"], p["start"]) == truth for p, truth in zip(predictions, truths, strict=True)]


def _paragraph(question: Question) -> dict[str, object]:
    answers = [{"text": answer.text, "answer_start": answer.start} for answer in question.answers]
    asked = {"id": question.id, "question": question.question, "answers": answers}
    return {"context": question.context, "qas": [asked]}


def _tokenizer(folder: Path) -> Tokenizer:
    tokenizer = read_folder(model_path(folder)).tokenizer
    if tokenizer is None:
        raise SystemExit(f"{folder} has no tokenizer")
    return tokenizer


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for work, tokens in ((plant, 120), (measure, 20_000)):
        verb = verbs.add_parser(work.__name__, help=work.__doc__)
        verb.set_defaults(work=work)
        verb.add_argument("model", type=Path)
        verb.add_argument("questions", type=Path)
        verb.add_argument("--tokens", type=int, default=tokens)
        verb.add_argument("--seed", type=int, default=0)
        if work is plant:
            verb.add_argument("-o", "--output", type=Path, required=True)
        else:
            verb.add_argument("-o", "--output", type=Path, default=RESULTS / "long_answers.json")
            verb.add_argument("--texts", type=int, default=50)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
