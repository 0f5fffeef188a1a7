"""Translations of a test set beside their references."""

from __future__ import annotations

import json
from dataclasses import dataclass

import click

from heedful.atomic import atomic_file, check_free
from heedful.cli.progress import counting_bar
from heedful.cli.translate.file import one_line, tell_truncated
from heedful.data.bitext.reading import read_pairs
from heedful.decoding import Beam
from heedful.inference.load import load_translator
from heedful.inference.translator import Translator
from heedful.tasks.bleu_bootstrap import Bleu
from heedful.tasks.translate_scores import Scorer, tokenizer_for


@dataclass(frozen=True)
class Options:
    """The options of `heedful translate evaluate`."""

    run: str
    files: tuple[str, ...]
    output: str | None = None
    source: str | None = None
    target: str | None = None
    beam: int = 5
    length_penalty: float = 1.0
    bleu_tokenizer: str | None = None
    as_json: bool = False
    overwrite: bool = False
    engine: str = "heedful"
    device: str | None = None


def evaluate_translations(options: Options) -> None:
    """Translate, score and print."""
    if options.output:
        check_free(options.output, options.overwrite)
    translator = load_translator(options.run, options.device, options.engine)
    names = translator.folder.names
    data = read_pairs(options.files, options.source or names[0], options.target or names[1], whole=False)
    for remark in data.remarks:
        click.echo(str(remark), err=True)
    right = [pair.target for pair in data.examples if not pair.empty]
    tokenizer = options.bleu_tokenizer or tokenizer_for(options.target or names[1])
    scorer = Scorer(right, tokenizer)  # what it refuses, it refuses before the work
    everything = _translated([pair.source for pair in data.examples], translator, options)
    if options.output:
        with atomic_file(options.output) as file:
            file.writelines(one_line(text) + "\n" for text in everything)
    said = [text for text, pair in zip(everything, data.examples, strict=True) if not pair.empty]
    scores, signatures = scorer.scores(said), scorer.signatures
    _, low, high = Bleu(said, right, tokenizer).of(range(len(said)))
    if options.as_json:
        report = {"pairs": len(said), "scores": dict(scores), "bleu_interval": [low, high], "signatures": signatures}
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    click.echo(f"bleu {scores['bleu']:6.2f} ({low:.2f} to {high:.2f})   {signatures['bleu']}")
    click.echo(f"chrf {scores['chrf']:6.2f}{'':18}{signatures['chrf']}")
    click.echo(f"{len(said):,} pairs")


def _translated(texts: list[str], translator: Translator, options: Options) -> list[str]:
    with counting_bar("translating", len(texts), "texts") as more:
        found = list(translator.stream(texts, Beam(options.beam, options.length_penalty), advance=more))
    tell_truncated(sum(one.truncated for one in found), translator)
    return [one.best for one in found]
