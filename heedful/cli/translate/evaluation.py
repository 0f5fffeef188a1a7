"""Translations of a test set beside their references."""

from __future__ import annotations

import json
from dataclasses import dataclass

import click

from heedful.atomic import atomic_file, check_free
from heedful.cli.precision import tell_int8
from heedful.cli.progress import progress_bar
from heedful.cli.translate.file import one_line, tell_truncated
from heedful.decoding import Beam
from heedful.inference.load import load_translator
from heedful.inference.translation_evaluation import PairsToScore, evaluate_translations


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
    precision: str = "auto"
    force: bool = False
    engine: str = "heedful"
    device: str | None = None


def evaluate_and_show(options: Options) -> None:
    """Translate, score and print."""
    if options.output:
        check_free(options.output, options.overwrite)
    translator = load_translator(options.run, options.device, options.engine, options.precision, options.force)
    tell_int8(translator.int8)
    test = PairsToScore(options.files, options.source, options.target, options.bleu_tokenizer)
    report = evaluate_translations(translator, test, Beam(options.beam, options.length_penalty), progress_bar)
    for remark in report.remarks:
        click.echo(str(remark), err=True)
    tell_truncated(report.truncated, translator)
    if options.output:
        with atomic_file(options.output) as file:
            file.writelines(one_line(text) + "\n" for text in report.translations)
    (low, high), scores, signatures = report.bleu_interval, report.scores, report.signatures
    if options.as_json:
        told = {"pairs": report.pairs, "scores": scores, "bleu_interval": [low, high], "signatures": signatures}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    click.echo(f"bleu {scores['bleu']:6.2f} ({low:.2f} to {high:.2f})   {signatures['bleu']}")
    click.echo(f"chrf {scores['chrf']:6.2f}{'':18}{signatures['chrf']}")
    click.echo(f"{report.pairs:,} pairs")
