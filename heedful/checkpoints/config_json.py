"""A model's `config.json`: what we understand becomes its config, what would change the mathematics is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig

C = TypeVar("C", bound=EncoderConfig)

# What Hugging Face calls a model that labels texts, the one class whose config.json says how it was trained.
CLASSIFIER = "SequenceClassification"

# Keys of Hugging Face that say nothing about the encoder's arithmetic: kept, and not worth a remark.
BOOKKEEPING = frozenset({
    "model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "use_cache",
    "gradient_checkpointing", "_name_or_path", "classifier_dropout", "id2label", "label2id", "problem_type",
    "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "output_attentions", "output_hidden_states",
    "return_dict", "chunk_size_feed_forward", "finetuning_task", "tokenizer_pieces", "quantization_config",
})  # fmt: skip

# What a config.json says of the task that the model was made for.
OF_A_TASK = {"architectures", "id2label", "label2id", "num_labels", "problem_type", "finetuning_task"}


@dataclass(frozen=True)
class ConfigFormat(Generic[C]):
    """How the `config.json` of one family is read."""

    kind: type[C]
    name: str  # as in "use a plain BERT"
    # Keys beside the fields that would change what the model computes, and the one value of each that is computed here.
    only_values: Mapping[str, Any] = field(default_factory=dict)
    bookkeeping: Collection[str] = ()  # beside those of all families
    # The same values in the words of our fields, where files have other words for them.
    translate: Callable[[Mapping[str, Any], Path], Mapping[str, Any]] = lambda values, where: values

    @property
    def fields(self) -> tuple[str, ...]:
        """The keys that are fields of the config."""
        return tuple(one.name for one in dataclasses.fields(self.kind))

    def read(self, values: Mapping[str, Any], where: Path) -> C:
        """The config that a `config.json` describes; what is not there has Hugging Face's default."""
        self._check_mathematics(values, where)
        values = self.translate(values, where)
        # Hugging Face writes null for "no padding piece"; nothing here is padded.
        known = {
            name: values[name]
            for name in self.fields
            if name in values and (name, values[name]) != ("pad_token_id", None)
        }
        _check_ranges(known, where)
        try:
            return from_mapping(self.kind, known, where)
        except HeedfulError as error:
            raise HeedfulError(error.what, where=where, remedy=error.remedy) from error

    def unknown(self, values: Mapping[str, Any]) -> list[str]:
        """The keys of a `config.json` that mean nothing here, in their order."""
        known = {*self.fields, *self.only_values, *self.bookkeeping, *BOOKKEEPING}
        return [key for key in values if key not in known]

    def _check_mathematics(self, values: Mapping[str, Any], where: Path) -> None:
        for key, supported in self.only_values.items():
            value = values.get(key, supported)
            if value != supported:
                raise HeedfulError(
                    f"{key} is {value!r}, which changes what the model computes and is not supported",
                    where=where,
                    remedy=f"use a {self.name} with {key} = {supported!r}",
                )
        code = values.get("auto_map") or {}
        if not isinstance(code, dict):
            raise HeedfulError(
                f"auto_map is {code!r}", where=where, remedy="fix the file: it is an object, or left out"
            )
        if "AutoModel" in code:
            raise HeedfulError(
                "the encoder is defined by program code in the folder (auto_map), and such code is never run",
                where=where,
                remedy=f"use a plain {self.name}",
            )


def config_json(config: EncoderConfig, architecture: str | None, foreign: Mapping[str, Any]) -> dict[str, Any]:
    """What to write as `config.json`: our own fields, and the `foreign` keys of the folder the model came from.

    `architecture` is the class of Hugging Face that computes the same, None where there is none.
    """
    kept = {key: value for key, value in foreign.items() if key not in ("torch_dtype", "quantization_config")}
    of_class = {} if architecture is None else {"architectures": [architecture]}
    return {**kept, "model_type": config.model_type, **of_class, "dtype": "float32", **to_mapping(config)}


def task_config_json(
    config: EncoderConfig,
    architecture: str | None,
    labels: Sequence[str],
    foreign: Mapping[str, Any],
    problem: str | None,
) -> dict[str, Any]:
    """What to write as `config.json` of a model with a head; `problem` is what a classifier of texts solves.

    What `foreign` says of another task is left out.
    """
    kept = {key: value for key, value in foreign.items() if key not in OF_A_TASK}
    values = config_json(config, architecture, kept)
    if problem:
        values["problem_type"] = problem
        labels = labels or ("LABEL_0",)
    if labels:
        values["id2label"] = {str(number): label for number, label in enumerate(labels)}
        values["label2id"] = {label: number for number, label in enumerate(labels)}
    return values


LAYERS = "num_hidden_layers"  # without any, a model is its embeddings


def _check_ranges(values: Mapping[str, Any], where: Path) -> None:
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    for name, value in numbers.items():
        least = 0 if name == LAYERS else 1
        if ("_size" in name or name.startswith(("num_", "max_"))) and value < least:
            remedy = "give a number above zero" if least else "give 0 or a number above it"
            raise HeedfulError(f"{name} is {value}", where=where, remedy=remedy)
        if name.endswith(("_prob", "_range", "_eps")) and not 0 <= value < 1:
            raise HeedfulError(f"{name} is {value}", where=where, remedy="give a number from 0 up to, but not, 1")
