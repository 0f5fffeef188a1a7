"""`heedful distil`: a small model that learns from a large one."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, run_options
from heedful.cli.shared_options import session_options
from heedful.runs.distilling.settings import DistillingSettings


@click.command(cls=RunCommand)
@run_options(DistillingSettings)
@session_options
def command(**options: object) -> None:
    """Distil TEACHER, a model or run folder, into a smaller model, on texts that need no labels.

    Of a model for sentence vectors the student learns the vectors: its own, at its own width, compare texts as the
    teacher's do, and the folder loads in sentence-transformers. With --keep-width they are as wide as the teacher's and
    lie in its space. Of a model that was fine-tuned for classify or regress it learns the answers, softened by
    --temperature, and beside them the labels of --labelled.

    The student has the teacher's vocabulary or its own (--tokenizer), and starts from the teacher's embeddings. The
    teacher reads each text once; what it says is kept in the run's folder. Ctrl-C loses nothing: --resume goes on.

    \b
    Examples:
      heedful distil all-MiniLM-L6-v2 --train lines.txt --size mini --budget 30m -o run
      heedful distil TEACHER --train lines.txt --dev sts.tsv --epochs 5 -o run
      heedful distil TEACHER --train lines.txt --tokenizer tokenizer --keep-width -o run
      heedful distil TEACHER --train lines.txt --student pretrained/model -o run
      heedful distil classifier --train unlabelled.txt --labelled train.tsv --dev dev.tsv -o run
      heedful distil --resume -o run
    """
    from functools import partial

    from heedful.cli.training import told_settings, trained
    from heedful.runs.distilling.run import distil

    settings = told_settings(DistillingSettings)
    raise SystemExit(trained(partial(distil, settings), settings, settings.output).outcome.exit_code)
