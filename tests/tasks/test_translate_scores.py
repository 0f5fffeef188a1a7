"""BLEU and chrF are sacreBLEU's own, with the signature that belongs to them."""

from __future__ import annotations

import sys

import pytest
import sacrebleu

from heedful.errors import HeedfulError
from heedful.tasks.translate_scores import Scorer, tokenizer_for

REFERENCES = ["Ein Hund läuft über die Wiese.", "Zwei Männer stehen vor einem Haus.", "Eine Frau (links) liest."]
TRANSLATIONS = ["Ein Hund rennt über die Wiese.", "Zwei Männer stehen vor dem Haus.", "Eine Frau liest ein Buch."]


def test_the_scores_are_those_of_sacrebleu() -> None:
    found = Scorer(REFERENCES).scores(TRANSLATIONS)
    assert found["bleu"] == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert found["chrf"] == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert Scorer(REFERENCES).scores(REFERENCES)["bleu"] == pytest.approx(100)


def test_nothing_said_is_worth_nothing() -> None:
    assert Scorer(REFERENCES).scores(["", "", ""]) == {"bleu": 0.0, "chrf": 0.0}


@pytest.mark.parametrize(("tokenizer", "tells"), [("13a", "tok:13a"), ("zh", "tok:zh"), ("char", "tok:char")])
def test_the_signature_tells_how_it_was_measured(tokenizer: str, tells: str) -> None:
    signatures = Scorer(REFERENCES, tokenizer).signatures
    assert tells in signatures["bleu"]
    assert f"version:{sacrebleu.__version__}" in signatures["bleu"]
    assert "case:mixed" in signatures["bleu"]
    assert "nrefs:1" in signatures["chrf"]


def test_chinese_is_cut_into_characters() -> None:
    references, translations = ["两只狗在跑。", "他在红山买了一匹马。"], ["两只狗在走。", "他在红山买了一头牛。"]
    assert Scorer(references, "zh").scores(translations)["bleu"] > 20
    assert Scorer(references, "13a").scores(translations)["bleu"] == 0


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("de", "13a"), ("zh", "zh"), ("zh-CN", "zh"), ("zh_tw", "zh"), ("ja", "char"), ("target", "13a"), ("", "13a")],
)
def test_the_target_language_chooses_the_tokenizer(language: str, tokenizer: str) -> None:
    assert tokenizer_for(language) == tokenizer


def test_a_tokenizer_that_would_need_the_network_is_refused() -> None:
    with pytest.raises(HeedfulError, match="'spm'") as error:
        Scorer(REFERENCES, "spm")
    assert "13a" in str(error.value)


def test_without_sacrebleu_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(HeedfulError, match="not installed") as error:
        Scorer(REFERENCES)
    assert "heedful[eval]" in str(error.value)
