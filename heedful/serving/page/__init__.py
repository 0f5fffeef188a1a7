"""The page to try everything: some static files, sent as they are under a strict policy."""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heedful.serving.app import App
from heedful.serving.refusals import Refusal

KINDS = {
    "index.html": "text/html",
    "style.css": "text/css",
    **dict.fromkeys(("page.js", "answers.js", "calls.js", "elements.js", "words.js"), "text/javascript"),
}
# Nothing but the page's own files, and no address but this server's.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def page_routes(app: App) -> list[Route]:
    """`/` and the files it consists of; anybody may read them, as they hold nothing of the server."""
    return [
        Route("/", app.guarded(_index, open_to_all=True)),
        Route("/page/{file}", app.guarded(_file, open_to_all=True)),
    ]


async def _index(request: Request) -> Response:
    return _sent("index.html")


async def _file(request: Request) -> Response:
    return _sent(request.path_params["file"])


def _sent(name: str) -> Response:
    if name not in KINDS:
        raise Refusal(404, "no_such_route", "there is no such file of the page", remedy="see /")
    content = resources.files(__package__).joinpath(name).read_bytes()
    return Response(content, headers=HEADERS, media_type=f"{KINDS[name]}; charset=utf-8")
