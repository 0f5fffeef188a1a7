"""The page in a browser: every verb, both languages, wide and narrow, by keyboard, and nothing foreign."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page, Route, sync_playwright

from heedful.cli.main import cli
from heedful.serving.page import KINDS

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
    ("multilabel", "classify", ".bars li"),
    ("regress", "regress", ".big"),
    ("tag", "tag", ".marked"),
    ("answer", "answer", ".marked"),
    ("choose", "choose", ".bars li"),
    ("en-zh", "attention", ".looked-at li"),
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
            assert seen.page.inner_text("[role=status]") in ("The answer is there.", "结果已显示。")
            if verb == "attention":
                seen.page.focus(".looking button >> nth=3")
                assert ("looks at" if language == "en" else "关注") in seen.page.inner_text("#answer [aria-live]")
                before = seen.page.inner_text("#answer [aria-live]")
                seen.page.select_option("#layer", "0")
                assert seen.page.inner_text("#answer [aria-live]") != before, "what was looked at has stayed"
                assert float(seen.page.inner_text(".matrix td:nth-child(2) >> nth=1")) <= 1
            seen.picture(f"{model}-{verb}-{language}-{width}")
            too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not seen.page.evaluate(too_wide), f"{verb} is wider than the screen"
        assert seen.wrong == []
    finally:
        seen.context.close()


def snippets(page: Page) -> list[str]:
    """The call for curl, Python and the command line."""
    return page.locator("#snippets pre").all_inner_texts()


def test_the_same_call_is_shown_and_right(live: Any, browser: Browser) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    seen.page.select_option("#model", "tiny")
    seen.page.click("#verb-fill")
    text = 'it\'s true, the [MASK] "cat" is null'
    seen.page.fill("#field-mask", text)
    shown = snippets(seen.page)
    assert f"curl {live.url}/v1/models/tiny/fill" in shown[0]
    given = json.loads(shlex.split(shown[0])[-1])
    assert len(live.ask("tiny", "fill", **given)["results"][0]["masks"][0]["guesses"]) == 5
    call = ast.parse(shown[1]).body[-1].value  # type: ignore[attr-defined]
    assert [ast.literal_eval(one) for one in call.args] == ["fill", [text]] and call.keywords[0].arg == "top"
    assert shlex.split(shown[2]) == ["heedful", "fill", "MODEL", text, "--top", "5"]
    seen.page.click("#verb-embed")
    seen.page.select_option("#field-pooling", "weighted-mean")
    assert snippets(seen.page)[2].endswith(" | heedful embed MODEL - -o vectors.npy --pooling weighted-mean")
    seen.page.select_option("#model", "en-zh")
    assert "alignments=True)" in snippets(seen.page)[1] and "--n-best 2 --alignments" in snippets(seen.page)[2]
    seen.context.close()


def test_every_verb_has_its_command_and_a_call_of_the_command_line_answers_alike(
    live: Any, browser: Browser, task_folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    for model, verb, _ in ACTIONS:
        seen.page.select_option("#model", model)
        seen.page.click(f"#verb-{verb}")
        assert all("heedful" in line for line in snippets(seen.page)[2].splitlines() if "printf" not in line)
        assert len(snippets(seen.page)) == 3
    seen.page.select_option("#model", "choose")
    made, command = (shlex.split(line) for line in snippets(seen.page)[2].splitlines())
    given = json.loads(shlex.split(snippets(seen.page)[0])[-1])
    (tmp_path / made[-1]).write_text(made[2])
    monkeypatch.chdir(tmp_path)
    arguments = [str(task_folders["choose"]) if word == "MODEL" else word for word in command[1:]]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    (expected,) = live.ask("choose", "choose", **given)["results"]
    assert json.loads(result.stdout)["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-4)
    seen.context.close()


def test_copying_works_without_the_clipboard_of_https_too(live: Any, browser: Browser) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    seen.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    seen.page.click(".copy >> nth=0")
    assert seen.page.inner_text(".copy >> nth=0") == seen.page.inner_text("[role=status]") == "Copied"
    assert seen.page.evaluate("getSelection().toString()").startswith("curl ")
    seen.context.close()


def test_what_is_typed_stays_and_nobody_waits_for_the_answer_to_what_is_gone(live: Any, browser: Browser) -> None:
    seen = Seen(browser, live.url, "en", 1200)
    seen.page.select_option("#model", "tiny")
    seen.page.click("#verb-tokenize")
    seen.page.fill("#field-text", "a dog")
    seen.page.route("**/tokenize", lambda route: None)  # it is never answered
    seen.page.click("#run")
    assert seen.page.inner_text("#run") == "Stop"
    seen.page.click("#run")
    seen.page.wait_for_function("document.getElementById('run').textContent === 'Run'")
    seen.page.click("#run")
    seen.page.click("#verb-attention")
    assert seen.page.input_value("#field-text") == "a dog"
    seen.page.click("#run")
    seen.page.wait_for_selector(".looking")
    seen.page.click("#language")
    assert seen.page.input_value("#field-text") == "a dog" and not seen.page.locator("[role=alert]").count()
    seen.context.close()


@pytest.mark.parametrize("pairs", [True, False, None])
def test_a_second_text_is_asked_for_as_the_model_was_trained(live: Any, browser: Browser, pairs: bool | None) -> None:
    info = live.http.get("/info").json()
    for model in info["models"]:
        model.update({"pairs": pairs} if "pairs" in model else {}, **({"mask": "<mask>"} if "mask" in model else {}))
    context = browser.new_context()
    page = context.new_page()
    page.route("**/info", lambda route: route.fulfill(json=info))
    page.goto(live.url)
    page.select_option("#model", "classify")
    assert page.get_attribute("[role=tab][aria-selected=true]", "id") == "verb-classify"
    second = page.locator("#field-pair")
    assert second.count() == (pairs is not False)
    if second.count():
        assert bool(second.input_value()) == (second.get_attribute("required") is not None) == bool(pairs)
    page.select_option("#model", "tiny")
    assert "<mask>" in page.input_value("#field-mask")
    context.close()


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
    seen.page.keyboard.press("End")
    assert seen.page.get_attribute("[role=tab]:focus", "id") == seen.page.get_attribute(
        "[role=tabpanel]", "aria-labelledby"
    )
    seen.page.keyboard.press("Home")
    assert seen.page.inner_text("[role=tab]:focus") == first
    for _ in range(10):
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate("document.activeElement.id") == "run":
            break
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector(".clocks")
    for part in seen.page.locator("[tabindex='0']:not([role=tab])").all():
        assert part.get_attribute("role") and part.get_attribute("aria-label")
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
        command = shlex.split(snippets(seen.page)[0])
        asked = json.loads(command[-1])
        assert command[:2] == ["curl", "-N"] and asked == {
            "inputs": ["The cat"],
            "max_tokens": 12,
            **how,
            "stream": True,
        }
        seen.picture(f"generate-{temperature}")
        assert seen.wrong == []
        seen.context.close()


def test_a_key_is_asked_for(start: Any, browser: Browser, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_SERVE_API_KEY", "sesame")
    with start((str(tiny_folder),)) as closed:
        context = browser.new_context()
        page = context.new_page()
        page.goto(closed.url)
        page.wait_for_selector("#ask-key[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector("[role=alert]")
        assert "key is missing" in page.inner_text("[role=alert]")
        page.reload()
        page.fill("#key", "sesame")
        page.keyboard.press("Enter")
        page.wait_for_selector("#run")
        page.click("#run")
        page.wait_for_selector(".clocks")
        assert "$KEY" in snippets(page)[0] and 'api_key=os.environ["KEY"]' in snippets(page)[1]
        assert "sesame" not in page.content()
        context.close()


def test_the_policy_lets_nothing_foreign_in(live: Any) -> None:
    answer = live.http.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert live.http.get("/page/page.js").headers["content-type"].startswith("text/javascript")
    for name in ("__init__.py", "..%2Fapp.py", "nothing"):
        assert live.http.get(f"/page/{name}").status_code == 404
    for text in (answer.text, *(live.http.get(f"/page/{name}").text for name in KINDS)):
        assert "http://" not in text and "https://" not in text


def test_while_models_are_loaded_the_page_waits(live: Any, browser: Browser) -> None:
    context = browser.new_context(locale="en-US")
    page, asked = context.new_page(), list[str]()

    def starting(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()
        else:
            route.fulfill(status=503, json={"error": {"status": 503, "message": "the models are being loaded"}})

    page.route("**/info", starting)
    page.goto(live.url)
    page.wait_for_selector("text=The models are being loaded …")
    page.wait_for_selector("#run")
    assert len(asked) == 2 and not page.locator("#answer").inner_text()
    context.close()
