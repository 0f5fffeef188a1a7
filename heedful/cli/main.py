"""The command line: `heedful VERB …`, one file a verb.

A verb's file imports only click at its top, so that `heedful --help` answers at once; what a verb needs is imported
when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from heedful.cli.lazy import Lazy
from heedful.cli.plain_warnings import show_warnings_plainly
from heedful.cli.version import show_version
from heedful.errors import HeedfulError

VERBS = (
    "bench",
    "convert",
    "corpus",
    "distil",
    "doctor",
    "embed",
    "evaluate",
    "export",
    "fill",
    "finetune",
    "generate",
    "inspect",
    "ladder",
    "look",
    "nearest",
    "new",
    "predict",
    "pretrain",
    "report",
    "score",
    "search",
    "serve",
    "similarity",
    "tokenizer",
    "toy",
    "translate",
    "vectors",
    "verify",
    "whiten",
)


@click.group(cls=Lazy, names=VERBS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version, the processor and the precision.",
)
def cli() -> None:
    """Attention models on your own text: tokenize, pretrain, fine-tune, translate, embed, compare, and look inside.

    \b
    Start here:
      heedful toy world                                a small bilingual world to try everything on
      heedful tokenizer train world/documents.*.txt -o tokenizer --vocab-size 2000
      heedful finetune classify --model MODEL --train train.tsv --dev dev.tsv -o run
      heedful translate train --train train.tsv --dev dev.tsv --source en --target de -o run
      heedful similarity MODEL "one text" "another"    how alike are they?
      heedful embed MODEL lines.txt -o vectors.npy     a vector for each line
    """
    show_warnings_plainly()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `heedful` command, of this process or with these arguments, and exit; user errors exit with 2.

    A program that has more to do afterwards catches SystemExit, whose `code` is the exit code.
    """
    try:
        name = None if arguments is None else "heedful"  # the name of another program is none of ours
        sys.exit(cli(arguments, prog_name=name, standalone_mode=False))
    except HeedfulError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        from heedful.cli.usage_errors import explained

        click.echo(f"error: {explained(error)}", err=True)
        sys.exit(error.exit_code)
