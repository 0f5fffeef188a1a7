"""The page in a browser: every verb, both languages, wide and narrow, by keyboard, and nothing foreign."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Where to look at what the browser has drawn.
PICTURES = os.environ.get("HEEDFUL_PICTURES")
ACTIONS = [
    ("tiny", "tokenize", ".tokens li"),
    ("tiny", "fill", ".bars li"),
    ("tiny", "embed", ".vector"),
    ("tiny", "similarity", ".matrix td"),
    ("tiny", "search", ".best li"),
    ("tiny", "score", ".plain td"),
    ("tiny", "attention", ".looking li"),
    ("classify", "classify", ".bars li"),
    ("regress", "regress", ".big"),
    ("tag", "tag", ".marked"),
    ("answer", "answer", ".marked"),
    ("choose", "choose", ".bars li"),
    ("en-zh", "translate", ".matrix td"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's browser; its own sandbox is not for the superuser."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("needs a browser")
    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


class Seen:
    """A page, and what went wrong or abroad in it."""

    def __init__(self, browser: Browser, url: str, language: str, width: int) -> None:
        locale = "zh-CN" if language == "zh" else "en-US"
        self.context = browser.new_context(viewport={"width": width, "height": 900}, locale=locale)
        self.page: Page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda asked: None if asked.url.startswith(url) else self.wrong.append(asked.url))
        self.page.goto(url)
        self.page.wait_for_selector("#run")

    def run(self, model: str, verb: str) -> None:
        """Choose, and press the button."""
        self.page.select_option("#model", model)
        self.page.click(f"#verb-{verb}")
        self.page.click("#run")
        self.page.wait_for_selector(".clocks, .problem")

    def picture(self, name: str) -> None:
        """Kept for people to look at, if they want to."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [1200, 390])
def test_every_verb_shows_its_answer(live: Any, browser: Browser, language: str, width: int) -> None:
    seen = Seen(browser, live.url, language, width)
    try:
        for model, verb, part in ACTIONS:
            seen.run(model, verb)
            assert seen.page.locator(f"#answer {part}").count() > 0, f"{verb}: {seen.page.inner_text('#answer')}"
            clocks = "computing" if language == "en" else "计算"
            assert clocks in seen.page.inner_text(".clocks")
            if verb == "attention":
                seen.page.focus(".looking button >> nth=3")
                assert ("looks at" if language == "en" else "关注") in seen.page.inner_text("#answer")
            seen.picture(f"{verb}-{language}-{width}")
            too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not seen.page.evaluate(too_wide), f"{verb} is wider than the screen"
        assert seen.wrong == []
    finally:
        seen.context.close()


def test_the_same_call_is_shown_and_right(live: Any, browser: Browser) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    seen.page.select_option("#model", "tiny")
    seen.page.click("#verb-fill")
    seen.page.fill("#field-mask", 'it\'s the [MASK] "cat"')
    shown = seen.page.locator("#snippets pre").all_inner_texts()
    assert f"curl {live.url}/v1/models/tiny/fill" in shown[0] and "it'\\''s the [MASK]" in shown[0]
    assert 'Client("' in shown[1] and '.call("fill", ["it\'s the [MASK] \\"cat\\""], top=5)' in shown[1]
    assert shown[2].startswith("heedful fill MODEL 'it'\\''s the")
    given = json.loads(shown[0].partition(" -d '")[2][:-1].replace("'\\''", "'"))
    assert len(live.ask("tiny", "fill", **given)["results"][0]["masks"][0]["guesses"]) == 5
    seen.context.close()


def test_an_error_is_told_and_the_language_can_be_changed(live: Any, browser: Browser) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    seen.page.select_option("#model", "tiny")
    seen.page.click("#verb-fill")
    seen.page.fill("#field-mask", "no mask <b>here</b>")
    seen.page.click("#run")
    assert "there is no [MASK]" in seen.page.inner_text("[role=alert]")
    seen.page.click("#language")
    assert seen.page.inner_text("#run") == "运行" and seen.page.get_attribute("html", "lang") == "zh-CN"
    seen.page.reload()
    seen.page.wait_for_selector("#run")
    assert seen.page.inner_text("#run") == "运行"
    seen.context.close()


def test_by_keyboard_alone(live: Any, browser: Browser) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    seen.page.focus("[role=tab][aria-selected=true]")
    first = seen.page.inner_text("[role=tab][aria-selected=true]")
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.inner_text("[role=tab]:focus") != first
    seen.page.keyboard.press("ArrowLeft")
    for _ in range(10):
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate("document.activeElement.id") == "run":
            break
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector(".clocks")
    for control in seen.page.locator("textarea, select, input:not([type=password])").all():
        assert control.evaluate("e => e.labels.length > 0 && e.labels[0].innerText.trim().length > 0")
    seen.context.close()


@pytest.mark.parametrize("temperature", ["0", "0.8"])
def test_a_text_appears_as_it_is_written(start: Any, browser: Browser, gpt_folder: Path, temperature: str) -> None:
    with start((str(gpt_folder),)) as writer:
        seen = Seen(browser, writer.url, "en", 1200)
        seen.page.click("#verb-generate")
        seen.page.fill("#field-prompt", "The cat")
        seen.page.fill("#field-max_tokens", "12")
        seen.page.fill("#field-temperature", temperature)
        seen.page.click("#run")
        seen.page.wait_for_selector(".clocks, .problem")
        how = {} if temperature == "0" else {"sample": True, "temperature": 0.8}
        (expected,) = writer.ask("gpt", "generate", inputs=["The cat"], max_tokens=12, **how)["results"]
        assert seen.page.text_content(".marked") == "The cat" + expected["texts"][0]["text"]
        seen.picture(f"generate-{temperature}")
        assert seen.wrong == []
        seen.context.close()


def test_a_key_is_asked_for(start: Any, browser: Browser, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_SERVE_API_KEY", "sesame")
    with start((str(tiny_folder),)) as closed:
        context = browser.new_context()
        page = context.new_page()
        page.goto(closed.url)
        page.fill("#key", "sesame")
        page.keyboard.press("Enter")
        page.wait_for_selector("#run")
        page.click("#run")
        page.wait_for_selector(".clocks")
        context.close()


def test_the_policy_lets_nothing_foreign_in(live: Any) -> None:
    answer = live.http.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert live.http.get("/page/page.js").headers["content-type"].startswith("text/javascript")
    for name in ("__init__.py", "..%2Fapp.py", "nothing"):
        assert live.http.get(f"/page/{name}").status_code == 404
    for text in (answer.text, live.http.get("/page/page.js").text, live.http.get("/page/style.css").text):
        assert "http://" not in text and "https://" not in text
