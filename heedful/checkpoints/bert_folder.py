"""BERT models from and to a model folder.

A round trip:

    folder = read_folder("all-MiniLM-L6-v2")
    bert = load_bert(folder)
    save_bert(bert, "copy", folder.tokenizer, foreign=folder.config, sentence=folder.sentence)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from heedful.atomic import atomic_folder
from heedful.checkpoints.bert_config_json import config_json
from heedful.checkpoints.bert_names import BERT_NAMES
from heedful.checkpoints.bert_weights import PRETRAINING_PARTS, open_bert
from heedful.checkpoints.folder import CONFIG, ModelFolder, check_vocabulary, with_pieces
from heedful.checkpoints.sentence_transformers import SentenceSettings, write_layout
from heedful.checkpoints.tensors import write_tensors
from heedful.checkpoints.weights import Unfilled, fill, take_apart
from heedful.errors import HeedfulError
from heedful.json_files import write_json
from heedful.models.bert import Bert, BertForPretraining, initialise
from heedful.text.tokenizer import Tokenizer

M = TypeVar("M", bound=nn.Module)


def load_bert(folder: ModelFolder) -> Bert:
    """The encoder of a folder in fp32, with a pooler if the folder has one; heads are left aside."""
    with open_bert(folder.weights, folder.model_config) as found:
        model = unfilled(folder, lambda: Bert(folder.model_config, pooler=found.holds("encoder.pooler")))
        fill(model, found, prefix="encoder.")
    return model.eval()


def load_bert_for_pretraining(folder: ModelFolder, seed: int) -> BertForPretraining:
    """The encoder with its MLM and NSP heads; what the folder lacks (pooler, a head) starts afresh from `seed`."""
    with open_bert(folder.weights, folder.model_config) as found:
        model = unfilled(folder, lambda: BertForPretraining(folder.model_config))
        fill(model, found)
        for part in PRETRAINING_PARTS:
            if not found.holds(part):
                initialise(model.get_submodule(part), folder.model_config, seed)
    return model.eval()


def save_bert(
    model: Bert | BertForPretraining,
    path: str | Path,
    tokenizer: Tokenizer | None,
    *,
    foreign: Mapping[str, Any] | None = None,
    sentence: SentenceSettings | None = None,
    max_length: int | None = None,
    max_shard_bytes: int | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model folder, as a whole or not at all; `foreign` is the config.json of the folder the model came from.

    With `sentence` the folder is one of sentence-transformers too, with `max_length` as its limit.
    """
    encoder, prefix, architecture = _kind(model)
    tensors = take_apart(model, BERT_NAMES, prefix)
    if prefix:  # Hugging Face leaves `bert.` out where there is nothing beside the encoder
        tensors = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
    with new_folder(path, tokenizer, encoder.config.vocab_size, overwrite) as folder:
        kept = with_pieces(foreign, tokenizer, encoder.config.vocab_size)
        write_json(folder / CONFIG, config_json(encoder.config, architecture, kept))
        write_tensors(folder, tensors, max_shard_bytes)
        if sentence is not None:
            write_layout(folder, sentence, max_length, encoder.config.hidden_size)


@contextmanager
def new_folder(path: str | Path, tokenizer: Tokenizer | None, vocab_size: int, overwrite: bool) -> Iterator[Path]:
    """A model folder with its tokenizer, to be filled; it becomes `path` when the block ends well."""
    target = Path(path)
    if tokenizer is not None:
        check_vocabulary(tokenizer, vocab_size, target)
    _check_is_model(target)
    with atomic_folder(target, overwrite) as folder:
        if tokenizer is not None:
            tokenizer.save(folder)
        yield folder


def unfilled(folder: ModelFolder, build: Callable[[], M]) -> M:
    """The model of a folder with nothing in its parameters yet."""
    try:
        with Unfilled():
            return build()
    except (RuntimeError, OverflowError, TypeError) as error:
        what = f"no model of the size config.json asks for can be built: {error}"
        raise HeedfulError(what, where=folder.weights / CONFIG, remedy="mend the numbers in config.json") from error


def _kind(model: Bert | BertForPretraining) -> tuple[Bert, str, str]:
    """The encoder, what our names of it have in front in the table, and Hugging Face's name of the class."""
    if isinstance(model, Bert):
        return model, "encoder.", "BertModel"
    return model.encoder, "", "BertForPreTraining"


def _check_is_model(target: Path) -> None:
    """Overwriting is for models: never replace a folder that holds something else."""
    if target.is_dir() and any(target.iterdir()) and not (target / CONFIG).is_file():
        raise HeedfulError("the folder holds something that is not a model", where=target, remedy="name a new folder")
