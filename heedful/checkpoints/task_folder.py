"""Fine-tuned models from and to a model folder: the encoder, what was put on top of it, and the task it is for.

The weights and `config.json` are as Hugging Face has them, where it has such a class; what the task needs beyond them
stands in `task.json`. A folder that Hugging Face has written has none, and its class says what the task is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.checkpoints.config_json import CLASSIFIER, task_config_json
from heedful.checkpoints.families import family_named, family_of
from heedful.checkpoints.family import Family
from heedful.checkpoints.folder import CONFIG, ModelFolder, with_pieces
from heedful.checkpoints.names import TASK_HEADS
from heedful.checkpoints.new_folder import new_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings, write_layout
from heedful.checkpoints.tensorflow_folder import config_name, config_values
from heedful.checkpoints.tensors import write_tensors
from heedful.checkpoints.weights import WeightSource, fill_parameters, fits, take_apart, unfilled
from heedful.errors import HeedfulError
from heedful.json_files import read_json, write_json
from heedful.models.encoder import Encoder, encoder_of
from heedful.text.tokenizer import Tokenizer

TASK = "task.json"
# What Hugging Face's classes are for -> our task.
TASKS: Mapping[str, str] = {
    CLASSIFIER: "classify",
    "TokenClassification": "tag",
    "QuestionAnswering": "answer",
    "MultipleChoice": "choose",
}
# Our tasks that are Hugging Face's sequence classification -> what its config.json calls their problem.
PROBLEMS: Mapping[str, str] = {
    "classify": "single_label_classification",
    "regress": "regression",
    "multilabel": "multi_label_classification",
}
# Parts that keep what their layers chose to start with; all others start as the family has it.
FREE_STARTERS = ("lstm", "crf", "head")


def load_for_task(
    folder: ModelFolder,
    build: Callable[[Encoder], nn.Module],
    seed: int,
    *,
    complete: bool = False,
    task: Mapping[str, Any] | None = None,
    note: Callable[[str], object] = lambda text: None,
) -> nn.Module:
    """The model that `build` makes of an encoder, with the folder's weights.

    A head or pooler that the folder lacks, and a head that it has in another shape or, where it is known that it is
    `task` that is to be learned, for another task or other labels, start afresh from `seed`, and `note` is told of
    them and of heads that are kept; with `complete`, for a model that is to answer, a fresh part is an error.
    """
    with folder.open_weights() as found:
        model = _built(build, folder, seed)
        other = None if task is None else _other_task(folder, task)
        fresh = _fresh_parts(_parts(model, folder.family), model, found, other)
        for part in _parts(model, folder.family):
            if part in TASK_HEADS and part not in fresh:
                note(f"{part} is kept as the folder has it")
        for part, reason in fresh.items():
            if complete:
                what = f"the model is not complete: {part}: {reason}"
                raise HeedfulError(what, where=folder.weights, remedy="use a folder that was fine-tuned for this task")
            note(f"{part} starts afresh: {reason}")
        fill_parameters(model, found, fresh=fresh)
    _start(model, fresh, folder, seed)
    return model.eval()


def start_for_task(folder: ModelFolder, build: Callable[[Encoder], nn.Module], seed: int) -> nn.Module:
    """The model that `build` makes of an encoder in the folder's shape, with nothing of what the folder has learned."""
    model = _built(build, folder, seed)
    _start(model, ["encoder", *(part for part in _parts(model, folder.family) if part in TASK_HEADS)], folder, seed)
    return model.eval()


def save_for_task(
    model: nn.Module,
    path: str | Path,
    tokenizer: Tokenizer | None,
    *,
    task: Mapping[str, Any],
    architecture: str | None,
    labels: Sequence[str] = (),
    foreign: Mapping[str, Any] | None = None,
    sentence: SentenceSettings | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model folder with `task` as its task.json, as a whole or not at all.

    `architecture` is what Hugging Face's class that computes the same is for, such as "TokenClassification", if there
    is one, and `foreign` the config.json of the folder the model came from. With `sentence` the folder is one of
    sentence-transformers too.
    """
    config = encoder_of(model).config
    family = family_named(config.model_type)
    named = None if architecture is None else family.classes.get(architecture)
    kept = {**_padding(family, tokenizer), **with_pieces(foreign, tokenizer, config.vocab_size)}
    values = task_config_json(
        config, named, labels, kept, problem_of(task, labels) if architecture == CLASSIFIER else None
    )
    tensors = take_apart(model, family.names, of_class=architecture)
    with new_folder(path, tokenizer, config.vocab_size, overwrite) as folder:
        write_json(folder / CONFIG, values)
        write_json(folder / TASK, dict(task))
        write_tensors(folder, tensors)
        if sentence is not None:
            write_layout(folder, sentence, task["max_length"], config.width)


def _padding(family: Family[Any], tokenizer: Tokenizer | None) -> dict[str, int]:
    """By what Hugging Face's GPT-2 and XLNet know where texts end in a padded batch; here nothing is padded."""
    pad = None if tokenizer is None else tokenizer.id_of(tokenizer.special_tokens.get("pad", ""))
    return {"pad_token_id": pad} if pad is not None and "pad_token_id" in family.config.bookkeeping else {}


def problem_of(task: Mapping[str, Any], labels: Sequence[str]) -> str:
    """What Hugging Face calls the problem of a task; one of another's is told by whether there are labels."""
    return PROBLEMS.get(str(task["task"]), PROBLEMS["classify" if labels else "regress"])


def read_task(folder: Path) -> dict[str, Any]:
    """The name of the task a folder is for, under `task`, and what else is known of it, such as its labels."""
    file = folder / TASK
    if not file.is_file():
        return _task_of_class(config_values(folder), folder / config_name(folder))
    task = read_json(file)
    if not isinstance(task.get("task"), str):
        raise HeedfulError("the file does not name its task", where=file, remedy='add it, such as "task": "classify"')
    return task


def is_for_task(folder: ModelFolder) -> bool:
    """Whether a folder is fine-tuned for a task, by its task.json or by its class."""
    if (folder.weights / TASK).is_file():
        return True
    names = {folder.family.classes.get(kind) for kind in TASKS}
    return any(name in names for name in folder.config.get("architectures") or ())


def _built(build: Callable[[Encoder], nn.Module], folder: ModelFolder, seed: int) -> nn.Module:
    """A head may hold any layer, and torch's layers draw their start from its one generator: it is lent for that."""
    encoder = unfilled(folder.model_config.build, folder.weights / CONFIG)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return build(encoder)


def _start(model: nn.Module, parts: Iterable[str], folder: ModelFolder, seed: int) -> None:
    """The family's own start for parts of the model; LSTM, CRF and a head of the user's own keep what they have."""
    ours = [model.get_submodule(part) for part in parts if part not in FREE_STARTERS]
    folder.family.initialise(nn.ModuleList(ours), folder.model_config, seed)


def _parts(model: nn.Module, family: Family[Any]) -> list[str]:
    """The parts of the model that a folder may lack."""
    names = list(model.state_dict())
    return [part for part in family.names.optional if any(name.startswith(f"{part}.") for name in names)]


def _fresh_parts(wanted: Sequence[str], model: nn.Module, found: WeightSource, other: str | None) -> dict[str, str]:
    """The parts of the model that the folder cannot fill, and why; `other` tells why none of its heads will do."""
    absent = {part: "the folder has none" for part in wanted if not found.holds(part)}
    heads = [part for part in wanted if part in TASK_HEADS and part not in absent]
    if other is not None:
        return absent | dict.fromkeys(heads, other)
    shaped = [part for part in heads if not fits(model, found, part)]
    return absent | dict.fromkeys(shaped, "the folder's has another shape, made for another task or other labels")


def _other_task(folder: ModelFolder, task: Mapping[str, Any]) -> str | None:
    """What the folder's heads were made for, if it says so and it is not this task with these labels."""
    try:
        made_for = read_task(folder.weights)
    except HeedfulError:
        return None  # a pretrained folder, or one that cannot tell
    if made_for["task"] != task["task"]:
        return f"the folder's was made for the task {made_for['task']}"
    if list(made_for.get("labels") or ()) != list(task.get("labels") or ()):
        return "the folder's was made for other labels"
    if made_for.get("pooling", "cls") != task.get("pooling", "cls"):
        return "the folder's was made for another pooling"
    if list(made_for.get("features") or ()) != list(task.get("features") or ()):
        return "the folder's was made for other layers"
    return None


def _task_of_class(config: Mapping[str, Any], where: Path) -> dict[str, Any]:
    classes = config.get("architectures")
    family = family_of(config, where)
    tasks = {family.classes[kind]: task for kind, task in TASKS.items() if kind in family.classes}
    task = tasks.get(str(classes[0])) if isinstance(classes, list) and classes else None
    if task is None:
        raise HeedfulError(
            "the model is not fine-tuned for a task",
            where=where,
            remedy="fine-tune it with `heedful finetune`, or use a folder with a task.json or one of the classes "
            + ", ".join(tasks),
        )
    if task not in ("classify", "tag"):
        return {"task": task}
    labels = _labels(config, where)
    if task == "classify":
        task = {problem: name for name, problem in PROBLEMS.items()}.get(str(config.get("problem_type")), task)
        task = "regress" if task == "classify" and len(labels) == 1 else task
    if task == "regress":
        return {"task": task}
    return {"task": task, "labels": labels}


def _labels(config: Mapping[str, Any], where: Path) -> list[str]:
    """The labels in the order of the outputs; Hugging Face leaves them out where they are two without names."""
    named = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    numbers = [str(number) for number in range(len(named))] if isinstance(named, dict) else []
    labels = [named[number] for number in numbers if number in named]
    if not labels or len(labels) != len(named) or len({str(label) for label in labels}) != len(labels):
        raise HeedfulError(
            "id2label is not an object of different labels by the numbers 0, 1, 2, …",
            where=where,
            remedy="fix id2label in config.json",
        )
    return [str(label) for label in labels]
