"""Text as markup."""

from __future__ import annotations

from html import escape


def markup(text: str) -> str:
    """Text made safe for HTML and SVG, in content and in quoted attributes.

    Half a surrogate pair, which JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    return escape(text.encode("utf-8", "replace").decode("utf-8"))
