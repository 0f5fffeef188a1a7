"""The models of a server and the verbs that each of them answers. All of it is loaded at the start."""

from __future__ import annotations

import re
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.checkpoints.task_folder import TASK
from heedful.data.text_files import read_texts
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.load import check_model, load
from heedful.inference.search import RECORD, Index
from heedful.inference.transformer_attention import has_maps
from heedful.inference.translator import Translator
from heedful.serving.refusals import Refusal
from heedful.serving.settings import ServeSettings
from heedful.serving.verbs.embed import Embed, Search, Similarity
from heedful.serving.verbs.generate import Generate
from heedful.serving.verbs.guess import Fill, LanguageModelScore, MaskedScore
from heedful.serving.verbs.look import Attention, Tokenize, TranslationAttention
from heedful.serving.verbs.predict import Predict
from heedful.serving.verbs.translate import Translate, TranslationScore
from heedful.serving.verbs.verb import Verb
from heedful.tasks.multilabel import MultiLabel

_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Served:
    """A model and what it answers."""

    name: str
    model: Any
    verbs: Mapping[str, Verb[Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)  # what may be told of it

    def verb(self, name: str) -> Verb[Any]:
        """One of its verbs; any other is refused with those there are."""
        if name not in self.verbs:
            there = ", ".join(self.verbs)
            raise Refusal(404, "no_such_verb", f"the model {self.name} has no verb {name!r}; it has {there}")
        return self.verbs[name]


class Catalogue:
    """The models by name; the first is the one that others' wire formats mean when they name none."""

    def __init__(self, served: Sequence[Served]) -> None:
        self.models = {one.name: one for one in served}

    def model(self, name: str) -> Served:
        """The model of that name; any other is refused with those there are."""
        if name not in self.models:
            there = ", ".join(self.models)
            raise Refusal(404, "no_such_model", f"there is no model {_shown(name)}; the models are {there}")
        return self.models[name]

    def first_with(self, verb: str) -> tuple[Served, Verb[Any]]:
        """The first model with this verb."""
        for one in self.models.values():
            if verb in one.verbs:
                return one, one.verbs[verb]
        raise Refusal(
            404, "no_such_verb", f"no model here has the verb {verb!r}", remedy="see /info for those there are"
        )


def read_catalogue(
    named: Mapping[str, str], settings: ServeSettings, tell: Callable[[str], object] = lambda line: None
) -> Catalogue:
    """Load all models, folders by name, and the lines to search; which it is that takes its time is told."""
    lines = settings.named_lines()
    how = (settings.device, settings.force, settings.precision)
    found = []
    for name, folder in named.items():
        tell(f"  loading {name}")
        found.append(served(name, load(folder, *how, engine=settings.engine), lines.get(name)))
    return Catalogue(found)


def checked_names(folders: Sequence[str], settings: ServeSettings) -> dict[str, str]:
    """The folders by name; what is no model is refused, and lines to search that belong to none of them."""
    named = model_names(folders, settings.named_models())
    for name in settings.named_lines():
        if name not in named:
            what, there = f"there are lines to search for {name}, which is no model here", ", ".join(named)
            raise HeedfulError(what, remedy=f"the models are {there}")
    for folder in named.values():
        check_model(folder, settings.force)
    return named


def model_names(folders: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """The folders by name: the one they are given, or that of the folder."""
    found: dict[str, str] = {}
    for folder in folders:
        path = Path(folder).resolve()
        name = path.parent.name if path.name == "model" else path.name
        if name in found or name in named:
            raise HeedfulError(f"two models are called {name}", remedy="name one of them with `name` NAME=FOLDER")
        found[name] = folder
    found |= named
    if not found:
        raise HeedfulError("there is no model to serve", remedy="give one or more model folders")
    for name in found:
        if not _NAME.fullmatch(name):
            what = f"{name!r} cannot be part of an address"
            raise HeedfulError(what, remedy="name it with `name` NAME=FOLDER: letters, digits, points and dashes")
    return found


def served(name: str, model: Embedder | Translator | Any, lines: str | None = None) -> Served:
    """A loaded model with its verbs."""
    if isinstance(model, Translator):
        if lines is not None:
            raise HeedfulError(f"{name} translates and cannot search", remedy="give the lines to a model with vectors")
        verbs: list[Verb[Any]] = [Translate(model), TranslationScore(model), Tokenize(model.folder.sides.source)]
        verbs += [TranslationAttention(model)] if has_maps(model.folder) else []
        facts = {"kind": "translator", "max_length": model.folder.max_length}
        return Served(name, model, {verb.name: verb for verb in verbs}, facts)
    return _served_encoder(name, model, lines)


def _served_encoder(name: str, model: Embedder, lines: str | None) -> Served:
    verbs: list[Verb[Any]] = [Embed(model), Similarity(model), Tokenize(model.tokenizer)]
    if model.encoder.has_attention:
        verbs.append(Attention(model))
    lm = _if_there(lambda: model.masked_lm)
    if lm is not None:
        verbs += [Fill(lm), MaskedScore(model)]
    generator = _if_there(lambda: model.generator)
    if generator is not None:
        verbs += [Generate(generator), LanguageModelScore(model)]
    if model.folder.family.two_way_lm is not None and _if_there(lambda: model.two_way_lm) is not None:
        verbs.append(LanguageModelScore(model))
    if lines is not None:
        verbs.append(Search(open_lines(model, lines)))
    by_name = {verb.name: verb for verb in verbs}
    facts: dict[str, Any] = {"kind": "encoder", "model_type": model.folder.model_type, "width": model.encoder.width}
    facts |= {} if lm is None else {"mask": lm.tokenizer.special_tokens["mask"]}
    facts |= {"layers": model.encoder.layer_count, "max_length": model.limit(None)}
    # A folder with a task.json must be whole; of any other nobody has said that it was fine-tuned.
    fine_tuned = (model.folder.weights / TASK).is_file()
    predictor = model.predictor if fine_tuned else _if_there(lambda: model.predictor)
    if predictor is not None:
        verb = "classify" if predictor.task.name == MultiLabel.name else predictor.task.name
        by_name[verb] = by_name["predict"] = Predict(predictor)
        facts |= {"task": predictor.task.name, "pairs": predictor.trained_on.pairs}
        facts |= {"labels": list(labels)} if (labels := getattr(predictor.task, "labels", None)) else {}
    return Served(name, model, by_name, facts)


def _if_there(part: Callable[[], Any]) -> Any:
    """A head of a model, None where the folder has no such head."""
    try:
        return part()
    except HeedfulError:
        return None


def open_lines(model: Embedder, path: str) -> Index:
    """An index that was made by `heedful search`, or one of the lines of a file that lasts as long as the server."""
    if (Path(path) / RECORD).is_file():
        index = Index.open(path, model)
    else:
        texts = list(read_texts(path, None))
        folder = tempfile.TemporaryDirectory(prefix="heedful-lines-")
        index = Index.create(folder.name, model)
        weakref.finalize(index, folder.cleanup)
        index.add(texts)
    if not len(index):
        raise HeedfulError("there is no line to search", where=path, remedy="give a file with lines in it")
    index.remember()
    return index


def _shown(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:100]}…")
