"""`heedful nearest`: the words nearest to a word, and analogies."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option


class SignedWords(click.Command):
    """A command that takes words with a minus at them: `king -man` is no option -m."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; with one dash only -h is one, and a minus by itself is an argument."""
        parts = (("-", arg[1:]) if _is_signed(arg) else (arg,) for arg in args)
        return super().parse_args(ctx, [part for some in parts for part in some])


def _is_signed(argument: str) -> bool:
    return len(argument) > 2 and argument[0] == "-" and "-" not in argument[1:3]


@click.command(cls=SignedWords, context_settings={"ignore_unknown_options": True})
@click.argument("model", type=click.Path())
@click.argument("words", nargs=-1, required=True)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str, words: tuple[str, ...], top: int, force: bool, as_json: bool) -> None:
    """The words whose vectors are nearest to those of WORDS, each for itself, or joined by + and -.

    MODEL is a folder of word2vec or of any encoder, whose token embeddings are taken, or a file of word vectors
    (.txt, .vec or .bin, as word2vec, gensim and fastText write them). An answer is one of its pieces, so that with
    BERT it may be a part of a word, as ##ing; ELMo answers with the words of its words.txt.

    \b
    Examples:
      heedful nearest MODEL france music
      heedful nearest MODEL king - man + woman
      heedful nearest MODEL king -man +woman
      heedful nearest vectors.bin 中国 --top 5
    """
    import json

    from heedful.inference.nearest import WordVectors, parse_terms

    groups = parse_terms(words)
    vectors = WordVectors.open(model, force)
    found = [
        (" ".join(f"{'-' if t.sign < 0 else '+'} {t.word}" for t in g).removeprefix("+ "), vectors.nearest(g, top))
        for g in groups
    ]
    if as_json:
        rows = [{"to": to, "nearest": [[word, round(cosine, 6)] for word, cosine in near]} for to, near in found]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for to, near in found:
        click.echo(to)
        for word, cosine in near:
            click.echo(f"  {cosine:.4f}  {word}")
