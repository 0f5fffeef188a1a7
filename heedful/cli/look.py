"""`heedful look`: what a model attends to, as one page."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option, overwrite_option


@click.command()
@click.argument("model", type=click.Path())
@click.argument("texts", nargs=-1, required=True, metavar="TEXT [TEXT]")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The .html to write.")
@force_option
@overwrite_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(model: str, texts: tuple[str, ...], output: str, force: bool, overwrite: bool, device: str | None) -> None:
    """Draw what each token of TEXT looks at, in every layer and head, as a page that needs no network.

    Two texts are read together, as a pair. Below them: the nearest neighbours of each token from layer to layer, with
    the texts read apart, so that one can see the bank of a river leave the bank of money; and how alike the model's
    positions are. Of a translation model: what the pieces of TEXT look at, and what those of its translation, which may
    be given as a second TEXT, look at in what was written before and in TEXT.

    \b
    Examples:
      heedful look MODEL "The old miller sold his mill." -o page.html
      heedful look MODEL "She sat on the bank of the river." "The bank lent him money." -o bank.html
    """
    from heedful.atomic import check_free
    from heedful.inference.load import load
    from heedful.inference.translator import Translator

    check_free(output, overwrite)
    loaded = load(model, device, force)
    if isinstance(loaded, Translator):
        _translation(loaded, texts, output, model)
    else:
        _encoder(loaded, texts, output, model)
    click.echo(f"{output}: written; open it in a browser", err=True)


def _encoder(loaded: object, texts: tuple[str, ...], output: str, name: str) -> None:
    from heedful.inference.embedder import Embedder
    from heedful.inference.look import attention_of, neighbours_of, position_cosines
    from heedful.views.attention_page import AttentionPicture, Neighbours, write_attention_page

    assert isinstance(loaded, Embedder)
    maps, near = attention_of(loaded, texts), neighbours_of(loaded, texts)
    picture = AttentionPicture("Self-attention", maps.tokens, maps.tokens, maps.weights)
    neighbours = Neighbours(near.tokens, near.texts, near.nearest)
    positions = position_cosines(getattr(loaded.encoder, "embeddings", None))
    write_attention_page(output, _shown(name), [picture], neighbours, positions)


def _translation(loaded: object, texts: tuple[str, ...], output: str, name: str) -> None:
    from heedful.errors import HeedfulError
    from heedful.inference.look import position_cosines
    from heedful.inference.transformer_attention import has_maps
    from heedful.inference.translator import Translator
    from heedful.views.attention_page import AttentionPicture, write_attention_page

    assert isinstance(loaded, Translator)
    if len(texts) > 2:
        raise HeedfulError(f"{len(texts)} texts", remedy="give a text, and perhaps its translation")
    said, pictures = list(texts[1:2]) or loaded.translate(texts[:1]), list[AttentionPicture]()
    own, past, cross = "The source looks at itself", "The translation looks back", "The translation looks at its source"
    if has_maps(loaded.folder):
        (maps,) = loaded.attention(texts[:1], said)
        pictures += [AttentionPicture(own, maps.source, maps.source, maps.encoder)]
        pictures += [AttentionPicture(past, maps.written, maps.given, maps.decoder)]
        pictures += [AttentionPicture(cross, maps.written, maps.source, maps.cross)]
    else:
        (one,) = loaded.alignments(texts[:1], said)
        pictures += [AttentionPicture(cross, one.target, one.source, one.weights[None, None])]
    positions = position_cosines(getattr(loaded.folder.model, "target", None))
    write_attention_page(output, _shown(name), pictures, positions=positions)


def _shown(name: str) -> str:
    from pathlib import Path

    return Path(name).resolve().name
