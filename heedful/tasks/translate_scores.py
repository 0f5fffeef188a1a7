"""BLEU and chrF by sacreBLEU, on text as it is, with the signatures that make the numbers comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import HeedfulError

# How sacreBLEU may cut texts into words; its other ways fetch something from the network or need another program.
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
# Texts of these languages are written without spaces; sacreBLEU's own way for Chinese is called zh.
_WITHOUT_SPACES = {"zh": "zh", "ja": "char", "th": "char", "lo": "char", "km": "char", "my": "char"}


def tokenizer_for(language: str) -> str:
    """The tokenizer that suits a target language, by its code or name of a column: zh, zh-CN, zh_tw … or 13a."""
    code = language.lower().replace("_", "-").partition("-")[0]
    return _WITHOUT_SPACES.get(code, "13a")


def check_tokenizer(name: str) -> str:
    """The name, if BLEU has a tokenizer of that name."""
    if name not in TOKENIZERS:
        what = f"no tokenizer for BLEU is called {name!r}"
        raise HeedfulError(what, remedy=f"choose one of {', '.join(TOKENIZERS)}")
    return name


class Scorer:
    """Compares translations with their references, which are looked at once."""

    def __init__(self, references: Sequence[str], tokenizer: str = "13a") -> None:
        try:
            from sacrebleu.metrics.bleu import BLEU
            from sacrebleu.metrics.chrf import CHRF
        except ImportError as error:
            remedy = "pip install 'heedful[eval]'"
            raise HeedfulError("translations are scored by sacrebleu, which is not installed", remedy=remedy) from error
        check_tokenizer(tokenizer)
        # force: without it sacreBLEU warns where texts look as if they were cut into words already.
        self._metrics: dict[str, Any] = {
            "bleu": BLEU(tokenize=tokenizer, force=True, references=[list(references)]),
            "chrf": CHRF(references=[list(references)]),
        }

    def scores(self, translations: Sequence[str]) -> Mapping[str, float]:
        """BLEU and chrF (0 … 100) of a translation for each reference."""
        given = list(translations)
        return {name: metric.corpus_score(given, None).score for name, metric in self._metrics.items()}

    @property
    def signatures(self) -> Mapping[str, str]:
        """What to tell beside each score: version, tokenizer, case, smoothing, number of references."""
        return {name: str(metric.get_signature()) for name, metric in self._metrics.items()}
