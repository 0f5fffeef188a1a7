"""What `heedful generate` does: one prompt as it is written, or many from a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import IO

import click

from heedful.atomic import check_free
from heedful.cli.precision import own_texts, tell_int8
from heedful.cli.progress import counting_bar
from heedful.cli.sink import sink
from heedful.data.text_files import read_texts
from heedful.errors import HeedfulError
from heedful.inference.generator import Generated, TextGenerator, Writing, writing_of
from heedful.inference.load import load_embedder

FULL = "the model has no room left for {} of the texts, which end there; --when-full slide goes on"


@dataclass(frozen=True)
class Options:
    """The command's options."""

    model: str
    prompt: str | None
    file: str | None
    column: str | None
    output: str | None
    max_tokens: int
    stop: tuple[str, ...]
    beam: int
    length_penalty: float
    n_best: int
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    count: int
    seed: int
    repetition_penalty: float
    when_full: str
    as_json: bool
    overwrite: bool
    precision: str
    force: bool
    device: str | None

    @property
    def writing(self) -> Writing:
        """How to write."""
        names: tuple[str, ...] = (
            "beam",
            "length_penalty",
            "n_best",
            "sample",
            "temperature",
            "top_k",
            "top_p",
            "count",
            "seed",
        )
        names += ("max_tokens", "stop", "repetition_penalty", "when_full")
        return writing_of(**{name: getattr(self, name) for name in names})


def generate_texts(options: Options) -> None:
    """Write what the options ask for, and tell why texts end."""
    if options.prompt is not None and options.file is not None:
        raise HeedfulError("both PROMPT and --file are given", remedy="give one of them")
    writing = options.writing
    if options.output is not None:
        check_free(options.output, options.overwrite)
    own = own_texts(options.file, options.column)
    loaded = load_embedder(options.model, options.device, options.force, options.precision, own)
    tell_int8(loaded.int8)
    generator = loaded.generator
    if options.file is None and options.output is None and not options.as_json and not _several(writing):
        _stream(generator, options.prompt, writing)
        return
    prompts = [options.prompt] if options.file is None else _prompts(options.file, options.column)
    reasons: list[str] = []
    with sink(options.output) as out, counting_bar("writing", len(prompts), "prompts") as advance:
        for number, texts in enumerate(generator.stream(prompts, writing), start=1):
            for text in texts:
                _tell(out, text, number, options, len(texts))
            reasons += [text.reason for text in texts]
            advance(1)
    _remark(reasons)


def _prompts(file: str, column: str | None) -> list[str | None]:
    """The prompts of a file; there is a text for each line, and one for a blank line begins from nothing."""
    prompts = [text if text.strip() else None for text in read_texts(file, column)]
    if not prompts:
        raise HeedfulError("there are no prompts", where=file, remedy="write one a line")
    if None in prompts:
        some = f"{prompts.count(None):,} of {len(prompts):,} prompts are blank"
        click.echo(f"note: {some}; their texts begin from nothing ({file})", err=True)
    return prompts


def _several(writing: Writing) -> bool:
    return writing.searches or writing.samples > 1


def _stream(generator: TextGenerator, prompt: str | None, writing: Writing) -> None:
    """The prompt and what follows, piece by piece."""
    pieces = generator.pieces(prompt, writing)
    told, reason = (prompt or "") + next(pieces), None  # what is wrong is told before anything is printed
    while reason is None:
        click.echo(told, nl=False)
        try:
            told = next(pieces)
        except StopIteration as end:
            reason = end.value
    click.echo()
    _remark([reason])


def _remark(reasons: list[str]) -> None:
    if "full" in reasons:
        click.echo(f"note: {FULL.format(reasons.count('full'))}", err=True)


def _tell(out: IO[str], text: Generated, number: int, options: Options, texts: int) -> None:
    if options.as_json:
        out.write(json.dumps({"number": number, **asdict(text)}, ensure_ascii=False) + "\n")
        return
    line = " ".join(f"{text.prompt}{text.text}".split("\n"))
    out.write(f"{number}\t{line}\n" if texts > 1 else f"{line}\n")
