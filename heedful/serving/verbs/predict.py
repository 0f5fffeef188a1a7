"""The answers of fine-tuned models: labels, numbers, tags, answers and choices, each under the name of its task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from heedful.inference.predictor import Predictor
from heedful.serving.verbs.verb import Asked, Verb, Work
from heedful.tasks.finetuning import predictions_of
from heedful.tasks.items import outputs_of
from heedful.tasks.task import Item

ABOUT = {
    "classify": "The label of texts or pairs, with the probability of each.",
    "regress": "A number for texts or pairs.",
    "tag": "The entities of texts, with their places in characters.",
    "answer": "The answer to a question in its context, with its place in characters; long contexts by windows.",
    "choose": "Which of several endings goes on best.",
}


class PredictAsked(Asked):
    """Inputs of a fine-tuned model, as its task takes them."""

    inputs: list[str | list[str] | dict[str, str | list[str]]] = Field(
        min_length=1,
        description='Texts; pairs ["…", "…"]; or objects such as {"question": …, "context": …} and '
        '{"context": …, "choices": […, …]}.',
    )


@dataclass(frozen=True)
class PredictProgram:
    """The outputs of one model."""

    one_pass: ClassVar[bool] = True
    predictor: Predictor

    def compute(self, units: Sequence[Item]) -> Sequence[Any]:
        """The outputs of items in one batch."""
        return outputs_of(self.predictor.model, units)


class Predict(Verb[PredictAsked]):
    """What a fine-tuned model says of its inputs."""

    name: ClassVar[str] = "predict"
    about: ClassVar[str] = "What a fine-tuned model says of each input, whatever its task."
    asked = PredictAsked

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def read(self, asked: PredictAsked, given: Any) -> Any:
        example = self.predictor.task.example(given)
        self.predictor.check_pairs([example])
        return example

    def work(self, asked: PredictAsked, inputs: Sequence[Any]) -> Work:
        one = self.predictor
        items = one.task.encode(inputs, one.tokenizer)

        def told(outputs: list[Any]) -> list[Any]:
            return predictions_of(one.task, one.model, inputs, items, outputs)

        return Work(PredictProgram(one), items, [item.tokens for item in items], told)
