"""The paths of others' wire formats."""

from __future__ import annotations

from starlette.routing import Route

from heedful.serving.app import App
from heedful.serving.wires.bert_service import BertService
from heedful.serving.wires.openai import OpenAi
from heedful.serving.wires.tei import Tei


def foreign_routes(app: App) -> list[Route]:
    """All of them."""
    openai, tei, bert = OpenAi(app.service), Tei(app.service), BertService(app.service)
    posted = {
        "/v1/embeddings": openai.embeddings,
        "/embed": tei.embed,
        "/embed_all": tei.embed_all,
        "/predict": tei.predict,
        "/rerank": tei.rerank,
        "/similarity": tei.similarity,
        "/tokenize": tei.tokenize,
        "/": tei.root,
        "/encode": bert.http,
    }
    routes = [Route(path, app.guarded(handler), methods=["POST"]) for path, handler in posted.items()]
    return [Route("/v1/models", app.guarded(openai.models)), *routes]
