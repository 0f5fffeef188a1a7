"""`heedful serve`: every verb of some models over HTTP."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, given_settings, run_options
from heedful.serving.settings import ENVIRONMENT, ServeSettings


@click.command(cls=RunCommand, context_settings={"auto_envvar_prefix": ENVIRONMENT})
# Not a path for click, which would take colons and not spaces to stand between those of the environment.
@click.argument("models", nargs=-1, type=str, metavar="MODEL…", envvar=f"{ENVIRONMENT}_MODELS")
@run_options(ServeSettings)
def command(models: tuple[str, ...], **_: object) -> None:
    """Serve the verbs of one or several model folders on one port: embed, similarity, search, fill, score, classify,
    regress, tag, answer, choose, translate, generate, tokenize and attention, whatever each of them can do.

    A model has the name of its folder, or the one given with --name. `/` is a page to try everything, /docs lists the
    routes, /info the models. Requests of all clients are merged into batches.

    Every option is also read from the environment: --max-wait from HEEDFUL_SERVE_MAX_WAIT, and the models, with spaces
    between them, from HEEDFUL_SERVE_MODELS. The key that requests must
    carry comes from HEEDFUL_SERVE_API_KEY or a file, never from the command line, where others could see it.

    \b
    Examples:
      heedful serve MODEL
      heedful serve --name mini=MODEL --name reviews=run --search mini=lines.txt
      HEEDFUL_SERVE_API_KEY=… heedful serve MODEL --host 0.0.0.0 --port 8080
      curl http://127.0.0.1:8000/v1/models/mini/embed -H "Content-Type: application/json" -d '{"inputs": ["a text"]}'
    """
    try:
        from heedful.serving.server import serve
    except ImportError as error:
        from heedful.errors import HeedfulError

        what = f"a package is missing: {error.name}"
        raise HeedfulError(what, remedy="install the extra: pip install 'heedful[serve]'") from error

    serve(models, given_settings(ServeSettings), lambda line: click.echo(line, err=True))
