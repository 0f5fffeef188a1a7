"""How good a model's translations of a test set are: BLEU with an interval, chrF, and the signatures of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.data.bitext.reading import read_pairs
from heedful.data.labelled.dataset import Remark
from heedful.decoding import Beam
from heedful.inference.bars import Bar, no_bar
from heedful.inference.translator import Translator
from heedful.tasks.bleu_bootstrap import Bleu
from heedful.tasks.translate_scores import Scorer, tokenizer_for
from heedful.text.rows import DataSource


@dataclass(frozen=True)
class TranslationReport:
    """What there is to say of a model's translations of a test set."""

    pairs: int
    scores: Mapping[str, float]
    bleu_interval: tuple[float, float]
    signatures: Mapping[str, str]
    translations: Sequence[str] = ()  # of every source, also of those without a reference
    remarks: Sequence[Remark] = ()
    truncated: int = 0  # sources that were too long


@dataclass(frozen=True)
class PairsToScore:
    """Pairs to judge translations by, and what their sides are called; None is as in training."""

    files: Sequence[str | DataSource]
    source: str | None = None
    target: str | None = None
    bleu_tokenizer: str | None = None  # sacreBLEU's; None is by the target's name


def evaluate_translations(
    translator: Translator, test: PairsToScore, beam: Beam, bar: Bar = no_bar
) -> TranslationReport:
    """Translate the sources, and compare with the references."""
    names = translator.folder.names
    target = test.target or names[1]
    data = read_pairs(test.files, test.source or names[0], target, whole=False)
    right = [pair.target for pair in data.examples if not pair.empty]
    tokenizer = test.bleu_tokenizer or tokenizer_for(target)
    scorer = Scorer(right, tokenizer)  # what it refuses, it refuses before the work
    sources = [pair.source for pair in data.examples]
    with bar("translating", len(sources), "texts") as advance:
        done = 0

        def more(count: int) -> None:
            nonlocal done
            done += count
            advance(done, done)

        found = list(translator.stream(sources, beam, advance=more))
    said = [one.best for one, pair in zip(found, data.examples, strict=True) if not pair.empty]
    _, low, high = Bleu(said, right, tokenizer).of(range(len(said)))
    return TranslationReport(
        pairs=len(said),
        scores=dict(scorer.scores(said)),
        bleu_interval=(low, high),
        signatures=scorer.signatures,
        translations=[one.best for one in found],
        remarks=data.remarks,
        truncated=sum(one.truncated for one in found),
    )
