"""Texts from prompts: as Hugging Face writes them, ended where asked, and the same piece by piece."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from transformers import GPT2LMHeadModel

from heedful.checkpoints.encoder_folder import save_model
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.generator import Generated, Writing, writing_of
from heedful.inference.load import load_embedder
from heedful.models.lstm_lm import LstmConfig, LstmForPretraining, initialise
from heedful.models.xlnet import XlnetConfig
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_folder import END_OF_TEXT
from heedful.text.xlnet_pipeline import framed_at_the_end
from tests.gpt_folder import byte_level_tokenizer, random_gpt

PROMPTS = ["The cat", "the", "on the cat, in", "猫", "on the cat"]
FAMILIES = ("gpt", "lstm", "xlnet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of a random GPT with 32 positions, a random LSTM and a random XLNet, with a byte-level tokenizer."""
    path, tokenizer = tmp_path_factory.mktemp("generator"), byte_level_tokenizer()
    gpt = random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=32)
    end = tokenizer.id_of("<|endoftext|>")
    save_model(gpt, path / "gpt", tokenizer, foreign={"bos_token_id": end, "eos_token_id": end})
    config = LstmConfig(tokenizer.vocab_size, width=32, layers=2)
    lstm = LstmForPretraining(config)
    initialise(lstm, config, seed=2)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.mul_(4)
    save_model(lstm, path / "lstm", tokenizer)
    framed = Tokenizer(tokenizer.library, {**tokenizer.special_tokens, "sep": END_OF_TEXT, "cls": "<unused0>"})
    xlnet = XlnetForPretraining(XlnetConfig(tokenizer.vocab_size, d_model=32, n_layer=2, n_head=2, d_inner=48))
    rng = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in xlnet.named_parameters():
            parameter.normal_(float(name.endswith("norm.weight")), 0.3, generator=rng)
    save_model(xlnet, path / "xlnet", framed_at_the_end(framed))
    return path


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, Embedder]:
    return {name: load_embedder(folder / name, "cpu") for name in FAMILIES}


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_search_writes_what_hugging_face_writes(
    folder: Path, models: dict[str, Embedder], penalty: float
) -> None:
    theirs, ours = GPT2LMHeadModel.from_pretrained(folder / "gpt").eval(), models["gpt"]
    found = ours.generate(PROMPTS, max_tokens=8, repetition_penalty=penalty)
    for prompt, text in zip(PROMPTS, found, strict=True):
        ids = torch.tensor([ours.tokenizer.pieces([prompt])[0].ids])
        options = {"do_sample": False, "max_new_tokens": 8, "repetition_penalty": penalty, "pad_token_id": 0}
        whole = theirs.generate(ids, attention_mask=torch.ones_like(ids), **options)[0]
        assert text == ours.tokenizer.decode(whole[ids.shape[1] :].tolist())


@pytest.mark.parametrize("model", FAMILIES)
def test_company_and_the_way_of_asking_change_nothing(models: dict[str, Embedder], model: str) -> None:
    together = models[model].generate(PROMPTS, max_tokens=12)
    assert together == [models[model].generate(prompt, max_tokens=12) for prompt in PROMPTS]
    assert together == ["".join(models[model].write(prompt, max_tokens=12)) for prompt in PROMPTS]
    assert len(set(together)) > 1


@pytest.mark.parametrize("model", FAMILIES)
def test_samples_follow_their_seed(models: dict[str, Embedder], model: str) -> None:
    def drawn(**options: object) -> object:
        return models[model].generate(PROMPTS, sample=True, max_tokens=8, **options)

    assert drawn(seed=1) == drawn(seed=1) != drawn(seed=2)
    assert drawn(top_k=1) == models[model].generate(PROMPTS, max_tokens=8)
    several = models[model].generate("the", sample=True, count=3, max_tokens=8)
    assert len(several) == 3 and len(set(several)) > 1
    assert "".join(models[model].write("the", sample=True, max_tokens=8, seed=4)) == models[model].generate(
        "the", sample=True, max_tokens=8, seed=4
    )


def mean(text: Generated) -> float:
    """The mean of a symbol, the end symbol included, by which a beam compares."""
    return text.log_probability / (text.tokens + (text.reason == "end"))


@pytest.mark.parametrize("model", FAMILIES)
def test_a_wide_beam_finds_likelier_texts(models: dict[str, Embedder], model: str) -> None:
    generator = models[model].generator
    greedy, wide = (generator.generate(PROMPTS, writing_of(beam=n, max_tokens=4)) for n in (1, 12))
    for one, other in zip(greedy, wide, strict=True):
        assert mean(other[0]) >= mean(one[0]) - 1e-4
    three = generator.generate(["the"], writing_of(beam=4, n_best=3, max_tokens=4))[0]
    assert len({one.log_probability for one in three}) == 3  # bytes that are no text look alike


@pytest.mark.parametrize("model", FAMILIES)
def test_a_text_ends_before_a_stop_string(models: dict[str, Embedder], model: str) -> None:
    whole = models[model].generate("the", sample=True, seed=3, max_tokens=20)
    stop = re.findall(r"[!-~]", whole[2:])[0]
    options = {"sample": True, "seed": 3, "max_tokens": 20, "stop": (stop, "never said")}
    cut = models[model].generate("the", **options)
    assert cut == whole[: whole.index(stop)]
    assert "".join(models[model].write("the", **options)) == cut
    (found,) = models[model].generator.generate(["the"], writing_of(**options))[0]
    assert found.reason == "stop" and found.tokens <= 20


def test_a_full_model_stops_or_slides_and_says_so(folder: Path, models: dict[str, Embedder]) -> None:
    generator = models["gpt"].generator
    (stopped,) = generator.generate(["the cat"], writing_of(max_tokens=50, sample=True))[0]
    prompt = len(generator.tokenizer.pieces(["the cat"])[0].ids)
    assert (stopped.reason, stopped.tokens) == ("full", 32 - prompt + 1)
    together = generator.generate(["a " * n for n in range(1, 13)], writing_of(max_tokens=50))
    assert {text.reason for (text,) in together} <= {"full", "end"}  # each at another step
    (slid,) = generator.generate(["the cat"], writing_of(max_tokens=50, sample=True, when_full="slide"))[0]
    assert slid.tokens > stopped.tokens and slid.text.startswith(stopped.text[:20])
    for name in ("lstm", "xlnet"):
        (on,) = models[name].generator.generate(["the cat"], writing_of(max_tokens=50, sample=True))[0]
        assert on.reason in ("length", "end")
    done = invoked("generate", folder / "gpt", "the cat", "--max-tokens", 50, "--sample")
    assert done.exit_code == 0 and "no room left" in done.stderr


def test_prompts_that_cannot_be_gone_on_with_are_told(models: dict[str, Embedder]) -> None:
    for empty in ("", "  \n"):
        with pytest.raises(HeedfulError, match=r"prompt number 2 is empty(.|\n)*no prompt at all"):
            models["gpt"].generate(["a", empty])
    with pytest.raises(HeedfulError, match=r"prompt number 1 has \d+ tokens, more than the 32 positions(.|\n)*slide"):
        models["gpt"].generate("many words " * 20)
    assert models["gpt"].generate("many words " * 20, when_full="slide", max_tokens=3)
    assert all(models[name].generate("many words " * 20, max_tokens=3) for name in ("lstm", "xlnet"))
    assert "".join(models["gpt"].write(None, max_tokens=3))
    for model in models.values():  # nothing is read before the one token
        assert len(model.generator.tokenizer.pieces(["a"])[0].ids) == 1 and model.generate("a", max_tokens=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "`temperature` has no effect"),
        ({"sample": True, "beam": 3}, "`beam` has no effect"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"stop": ("",)}, "stop string is empty"),
        ({"beam": 2, "when_full": "slide"}, "a beam does not slide"),
        ({"sample": True, "top_p": 2.0}, "top_p"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(HeedfulError, match=message):
        writing_of(**options)  # type: ignore[arg-type]


def test_a_beam_cannot_be_heard_before_its_end(models: dict[str, Embedder]) -> None:
    with pytest.raises(HeedfulError, match="certain of nothing"):
        next(models["gpt"].generator.pieces("a", Writing(how=writing_of(beam=3).how)))


def invoked(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_the_command_line_writes_the_same(folder: Path, models: dict[str, Embedder], tmp_path: Path) -> None:
    expected = models["gpt"].generate(PROMPTS, max_tokens=6)
    one = invoked("generate", folder / "gpt", PROMPTS[0], "--max-tokens", 6)
    assert one.exit_code == 0 and one.stdout == f"{PROMPTS[0]}{expected[0]}\n"
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n", encoding="utf-8")
    target = tmp_path / "texts.jsonl"
    options = ("--file", tmp_path / "prompts.txt", "--max-tokens", 6, "--json", "-o", target)
    assert invoked("generate", folder / "gpt", *options).exit_code == 0
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == expected and [row["prompt"] for row in rows] == PROMPTS
    again = invoked("generate", folder / "gpt", *options)
    assert isinstance(again.exception, HeedfulError) and "--overwrite" in str(again.exception)


def test_the_wrong_family_is_told_which_verb_suits(tiny_folder: Path) -> None:
    done = invoked("generate", tiny_folder, "a")
    assert isinstance(done.exception, HeedfulError)
    assert "bert does not say what comes next" in str(done.exception) and "heedful fill" in str(done.exception)
