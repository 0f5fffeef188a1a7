"""Every run from Python: one call for each kind, whose keywords are the fields of its settings.

run = heedful.finetune("classify", model="MODEL", train=rows, dev="dev.tsv", output="run", epochs=3)
run.scores["accuracy"], run.load().predict(["a text"])

The dataclasses here exist for editors and type checkers: a call takes what they take. Nothing slow is imported before
the first call.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from heedful.errors import HeedfulError
from heedful.runs.distilling.settings import DistillingSettings
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.preparation.settings import CorpusSettings, TokenizerSettings
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.session import Session, Shown
from heedful.runs.settings import Place, data_of, named_arguments, one_or_two, told_of
from heedful.runs.translation.settings import TranslationSettings

if TYPE_CHECKING:
    from heedful.data.corpus.corpus import Corpus
    from heedful.data.labelled.dataset import BadRows
    from heedful.inference.bars import Bar
    from heedful.inference.evaluation import EvaluationReport
    from heedful.inference.translation_evaluation import TranslationReport
    from heedful.inference.whitened import Whitened
    from heedful.runs.ladder.climb import Ladder
    from heedful.runs.run import Run, Stage
    from heedful.text.tokenizer import Tokenizer

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class TokenizerCall(Shown, TokenizerSettings):
    """What `train_tokenizer` takes."""


@dataclass(frozen=True)
class CorpusCall(Shown, CorpusSettings):
    """What `build_corpus` takes."""


@dataclass(frozen=True)
class PretrainingCall(Session, PretrainingSettings):
    """What `pretrain` takes."""


@dataclass(frozen=True)
class FinetuningCall(Session, FinetuningSettings):
    """What `finetune` takes."""


@dataclass(frozen=True)
class DistillingCall(Session, DistillingSettings):
    """What `distil` takes."""


@dataclass(frozen=True)
class TranslationCall(Session, TranslationSettings):
    """What `train_translator` takes."""


@dataclass(frozen=True)
class LadderCall(Session, LadderSettings):
    """What `ladder` takes."""


def _taking(takes: Callable[P, object]) -> Callable[[Callable[[dict[str, Any], Any], R]], Callable[P, R]]:
    """Make a function of the fields that were given and the session one that takes what `takes` takes, and says so."""
    kind: Any = takes
    session: Any = Session if issubclass(kind, Session) else Shown
    beside = {field.name for field in dataclasses.fields(session)}

    def decorated(function: Callable[[dict[str, Any], Any], R]) -> Callable[P, R]:
        def call(*positional: P.args, **named: P.kwargs) -> R:
            given = {**named_arguments(kind, positional, function.__name__), **named}
            how = session(**{name: given.pop(name) for name in beside & set(given)})
            return function(given, how)

        call.__name__ = call.__qualname__ = function.__name__
        call.__doc__ = f"{function.__doc__}\n\n{_listed(kind)}"
        call.__signature__ = inspect.signature(kind).replace(return_annotation=function.__annotations__["return"])  # type: ignore[attr-defined]
        return call

    return decorated


def _listed(kind: type[Any]) -> str:
    """What each field means, for help()."""
    told = ((field.name, told_of(field)) for field in dataclasses.fields(kind))
    return "\n".join(f"{name}: {known.help} {known.unset and f'[{known.unset}]'}".rstrip() for name, known in told)


@_taking(TokenizerCall)
def train_tokenizer(given: dict[str, Any], how: Shown) -> Tokenizer:
    """Learn a vocabulary from one file or several, write it to the folder `output`, and give it back."""
    from heedful.runs.preparation import tokenizer
    from heedful.runs.settings import settings_from

    return tokenizer.train_tokenizer(settings_from(TokenizerSettings, given), _bar(how.progress))


@_taking(CorpusCall)
def build_corpus(given: dict[str, Any], how: Shown) -> Corpus:
    """Turn one file or several into token shards in the folder `output`, to pretrain on."""
    from heedful.runs.preparation import corpus
    from heedful.runs.settings import settings_from

    return corpus.build_corpus(settings_from(CorpusSettings, given), _bar(how.progress))


@_taking(PretrainingCall)
def pretrain(given: dict[str, Any], how: Session) -> Run:
    """Pretrain a model of one's own on a corpus, in the run folder `output`."""
    from heedful.runs.pretraining import run
    from heedful.runs.settings_file import settings_of

    settings = settings_of(PretrainingSettings, given, how.resume)
    with _stage(settings.output, how) as stage:
        return run.pretrain(settings, stage)


@_taking(FinetuningCall)
def finetune(given: dict[str, Any], how: Session) -> Run:
    """Fine-tune a model folder for a task: classify, regress, tag, answer, choose, or one of your own."""
    from heedful.runs.finetuning.task_fields import with_own_fields
    from heedful.runs.finetuning.trials import finetune_all
    from heedful.runs.settings_file import settings_of

    settings = settings_of(FinetuningSettings, with_own_fields(given), how.resume)
    with _stage(settings.output, how) as stage:
        return finetune_all(settings, stage)


@_taking(DistillingCall)
def distil(given: dict[str, Any], how: Session) -> Run:
    """Let a small model learn from a large one: its sentence vectors, or its answers to a task."""
    from heedful.runs.distilling import run
    from heedful.runs.settings_file import settings_of

    settings = settings_of(DistillingSettings, given, how.resume)
    with _stage(settings.output, how) as stage:
        return run.distil(settings, stage)


@_taking(TranslationCall)
def train_translator(given: dict[str, Any], how: Session) -> Run:
    """Train a model that translates, or replies, from pairs of sentences."""
    from heedful.runs.settings_file import settings_of
    from heedful.runs.translation import run

    settings = settings_of(TranslationSettings, given, how.resume)
    with _stage(settings.output, how) as stage:
        return run.train_translator(settings, stage)


@_taking(LadderCall)
def ladder(given: dict[str, Any], how: Session) -> Ladder:
    """Train every kind of language model on one corpus with one budget, below the folder `output`, and compare them."""
    from heedful.runs.ladder.climb import climb
    from heedful.runs.settings_file import settings_of

    settings = settings_of(LadderSettings, given, how.resume)
    with _stage(settings.output, how) as stage:
        return climb(settings, stage)


def evaluate(
    run: Run | Place,
    data: Any,
    *,
    compared_with: Run | Place | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    encoding: str | None = None,
    bad_rows: BadRows = "error",
    rounds: int = 500,
    worst: int = 5,
    progress: bool | None = None,
) -> EvaluationReport:
    """Score a fine-tuned model on labelled data, a path or rows in memory, as `heedful evaluate` does."""
    from heedful.data.labelled.dataset import Columns
    from heedful.inference import evaluation
    from heedful.inference.load import predictor
    from heedful.text.encodings import reading_as

    models = [predictor(_folder(one)) for one in (run, compared_with) if one is not None]
    settings = evaluation.EvaluationSettings(Columns(text, pair, label), rounds, worst, bad_rows)
    with reading_as(encoding):
        return evaluation.evaluate(models, data_of(data), settings, _bar(progress))


def evaluate_translator(
    run: Run | Place,
    data: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    beam: int = 5,
    length_penalty: float = 1.0,
    bleu_tokenizer: str | None = None,
    progress: bool | None = None,
) -> TranslationReport:
    """Translate the sources of pairs, a path, two paths or rows in memory, and compare with their targets."""
    from heedful.decoding import Beam
    from heedful.inference.load import load_translator
    from heedful.inference.translation_evaluation import PairsToScore, evaluate_translations

    test = PairsToScore(one_or_two(data), source, target, bleu_tokenizer)
    return evaluate_translations(load_translator(_folder(run)), test, Beam(beam, length_penalty), _bar(progress))


def whiten(
    model: Run | Place,
    lines: Place | Sequence[str],
    output: Place,
    *,
    layer: int = 0,
    width: int | None = None,
    pooling: str = "mean",
    text: str | None = None,
    encoding: str | None = None,
    force: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Whitened:
    """Make sentence vectors of a model and raw lines, a path or texts in memory, as `heedful whiten` does."""
    from heedful.data.text_files import read_texts
    from heedful.inference import whitened
    from heedful.text.encodings import reading_as

    asked: dict[str, Any] = {"layer": layer, "width": width, "pooling": pooling, "force": force, "overwrite": overwrite}
    with reading_as(encoding):
        texts = read_texts(lines, text) if isinstance(lines, str | Path) else lines
        return whitened.whiten(_folder(model), texts, output, **asked, bar=_bar(progress))


@contextmanager
def _stage(output: Place, how: Session) -> Iterator[Stage]:
    """Where a run takes place, with whoever listens; nothing of the process is changed for it."""
    from heedful.cli.training_display import TrainingDisplay
    from heedful.runs.run import Stage
    from heedful.training.events import Event
    from heedful.training.run_folder import RunFolder

    with ExitStack() as stack:
        if how.on_event is not None and not callable(how.on_event):
            raise HeedfulError(f"on_event is {how.on_event!r}", remedy="give a function that takes an event")
        listeners: list[Callable[[Event], object]] = [how.on_event] if how.on_event is not None else []
        display = TrainingDisplay()
        if display.watched if how.progress is None else how.progress:
            listeners.append(stack.enter_context(display).show)

        def hear(event: Event) -> None:
            for listener in listeners:
                listener(event)

        yield Stage(RunFolder(output), how.resume, hear, tensorboard=how.tensorboard)


def _bar(progress: bool | None) -> Bar:
    from heedful.cli.progress import progress_bar
    from heedful.inference.bars import no_bar

    return no_bar if progress is False else progress_bar


def _folder(run: Run | Place) -> Path:
    folder: Path | Place = run.folder if hasattr(run, "folder") else run
    return Path(folder)
