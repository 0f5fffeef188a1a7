"""Texts that go on from prompts, as a whole or piece by piece as they are written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import Field

from heedful.errors import HeedfulError
from heedful.inference.generator import TextGenerator, Writing, writing_of
from heedful.serving.verbs.verb import AskedTexts, Verb, Work

MOST_TOKENS = 4096
MOST_TEXTS = 32


class GenerateAsked(AskedTexts):
    """Prompts, and how to go on from them."""

    max_tokens: int = Field(100, ge=1, le=MOST_TOKENS, description="The most tokens of a text.")
    sample: bool = Field(False, description="Draw at random; otherwise greedy search, or a beam.")
    temperature: float = Field(1.0, gt=0.0, le=100.0, description="Of samples: below 1 more cautious.")
    top_k: int = Field(0, ge=0, le=1_000_000, description="Of samples: from the likeliest k; 0 for all.")
    top_p: float = Field(1.0, gt=0.0, le=1.0, description="Of samples: from the likeliest that reach p.")
    count: int = Field(1, ge=1, le=MOST_TEXTS, description="Of samples: how many for each prompt.")
    seed: int = Field(0, ge=0, le=2**31, description="Of samples.")
    beam: int = Field(1, ge=1, le=MOST_TEXTS, description="Hypotheses kept; 1 is greedy search.")
    length_penalty: float = Field(1.0, ge=0.0, le=10.0, description="Of a beam: α in log P(y) / |y|^α.")
    n_best: int = Field(1, ge=1, le=MOST_TEXTS, description="Of a beam: texts for each prompt.")
    stop: list[str] = Field([], max_length=16, description="Strings before which a text ends.")
    repetition_penalty: float = Field(1.0, gt=0.0, le=100.0, description="Above 1: fewer repetitions.")
    when_full: Literal["stop", "slide"] = Field("stop", description="What to do when the model has no room left.")
    stream: bool = Field(False, description="Send the pieces of one text as server-sent events while it is written.")

    @property
    def writing(self) -> Writing:
        """How to write."""
        beside = {"inputs", "timing", "timeout_ms", "stream", "stop"}
        return writing_of(**self.model_dump(exclude=beside), stop=tuple(self.stop))


@dataclass(frozen=True)
class GenerateProgram:
    """Texts of one model. Samples depend on their company, so those of a request are drawn by themselves."""

    one_pass: ClassVar[bool] = False
    generator: TextGenerator
    writing: Writing
    own: object = None

    def compute(self, units: Sequence[tuple[str, ...]]) -> Sequence[Any]:
        """The texts for the prompts of each unit."""
        prompts = [prompt for unit in units for prompt in unit]
        found = iter(self.generator.generate(prompts, self.writing))
        return [[next(found) for _ in unit] for unit in units]


@dataclass(frozen=True, eq=False)
class StreamProgram:
    """One text, told piece by piece until it ends or nobody listens."""

    one_pass: ClassVar[bool] = False
    generator: TextGenerator
    writing: Writing
    tell: Callable[[str], None]
    over: threading.Event = field(default_factory=threading.Event)

    def compute(self, units: Sequence[str]) -> Sequence[str]:
        """Why the text ends."""
        return [self._write(prompt) for prompt in units]

    def _write(self, prompt: str) -> str:
        pieces = self.generator.pieces(prompt, self.writing)
        while not self.over.is_set():
            try:
                piece = next(pieces)
            except StopIteration as end:
                return str(end.value)
            if piece:
                self.tell(piece)
        return "gone"


class Generate(Verb[GenerateAsked]):
    """How prompts go on."""

    name: ClassVar[str] = "generate"
    about: ClassVar[str] = "How prompts go on; with `stream` one text as server-sent events while it is written."
    asked = GenerateAsked

    def __init__(self, generator: TextGenerator) -> None:
        self.generator = generator

    def read(self, asked: GenerateAsked, given: Any) -> Any:
        if not given.strip():
            raise HeedfulError("the prompt is empty", remedy="write how the text begins")
        self.generator.prompt_ids(given, asked.writing)  # one that is too long is refused alone
        return given

    def work(self, asked: GenerateAsked, inputs: Sequence[Any]) -> Work:
        units = [tuple(inputs)] if asked.sample else [(prompt,) for prompt in inputs]
        program = GenerateProgram(self.generator, asked.writing, object() if asked.sample else None)
        return Work(program, units, [self._size(asked, unit) for unit in units], _told)

    def streamed(self, asked: GenerateAsked, tell: Callable[[str], None]) -> tuple[StreamProgram, Work]:
        """The work for one text whose pieces are told while it is written."""
        if len(asked.inputs) != 1 or asked.writing.samples != 1 or asked.writing.searches:
            what = "only one text, drawn or by greedy search, can be streamed"
            raise HeedfulError(what, remedy="give one input, without beam and count")
        program = StreamProgram(self.generator, asked.writing, tell)
        prompt = self.read(asked, asked.inputs[0])
        return program, Work(program, [prompt], [self._size(asked, (prompt,))])

    def _size(self, asked: GenerateAsked, prompts: Sequence[str]) -> int:
        """Tokens that are read and, at most, written."""
        read = sum(len(encoding.ids) for encoding in self.generator.tokenizer.pieces(list(prompts)))
        return read + len(prompts) * asked.max_tokens * max(asked.beam, asked.count)


def _told(results: list[Any]) -> list[Any]:
    return [{"texts": [_text(one) for one in texts]} for unit in results for texts in unit]


def _text(one: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name != "prompt"}
