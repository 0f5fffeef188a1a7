"""benchmarks/reversal.py with next to no training: what it writes, and that nothing is done twice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Script = Callable[[str], ModuleType]


@pytest.fixture
def reversal(script: Script, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = script("reversal")
    monkeypatch.setattr(module, "SHORT", [module.Run("decoder 1", 3, 4, 2, 4), module.Run("Transformer", 3, 5, 2, 4)])
    monkeypatch.setattr(module, "LONG", [module.Run("attention", 3, 6, 1, 4)])
    for name, value in {"TESTED": 6, "LENGTHS": range(3, 6, 2)}.items():
        monkeypatch.setattr(module, name, value)
    return module


def run(module: ModuleType, output: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> dict[str, object]:
    monkeypatch.setattr("sys.argv", ["reversal.py", "-o", str(output), *more])
    module.main()
    found: dict[str, object] = json.loads(output.read_text(encoding="utf-8"))
    return found


def test_it_writes_all_runs_and_repeats_none(
    reversal: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "reversal.json"
    found = run(reversal, output, monkeypatch)
    assert [row[:2] for row in found["tables"][0]["rows"]] == [  # type: ignore[index]
        ["decoder 1", "3–4"], ["Transformer", "3–5"], ["attention", "3–6"],
    ]  # fmt: skip
    assert found["tables"][1]["columns"][2:] == ["exact at 3", "exact at 5"]  # type: ignore[index]
    picture = output.with_suffix(".svg").read_text(encoding="utf-8")
    assert "Trained on short sequences" in picture and "decoder 1" in picture

    def refuse(run: object) -> None:
        raise AssertionError(run)

    monkeypatch.setattr(reversal, "trained", refuse)
    assert run(reversal, output, monkeypatch)["runs"] == found["runs"]
    with pytest.raises(AssertionError, match="decoder 1"):
        run(reversal, output, monkeypatch, "--afresh")


def test_what_is_held_out_is_never_trained_on(reversal: ModuleType) -> None:
    rng = random.Random(0)
    trained, tested = ({reversal.drawn(rng, 3, held_out) for _ in range(500)} for held_out in (False, True))
    assert not trained & tested and 0 < len(tested) < len(trained)
    shares = [reversal.is_held_out((a, b, c)) for a in range(10) for b in range(10) for c in range(10)]
    assert 0.05 < sum(shares) / len(shares) < 0.15


def test_only_a_whole_reversal_is_right(reversal: ModuleType) -> None:
    assert reversal.framed([(4, 5, 6)]) == ([[2, 4, 5, 6, 3]], [[2, 6, 5, 4, 3]])

    class Copier:
        """Says the source as it is, which is right for palindromes only."""

        def encode(self, source):  # type: ignore[no-untyped-def]
            return [row.tolist() for row in source.ids.split(list(source.lengths))]

        def start(self, memory, beam, longest):  # type: ignore[no-untyped-def]
            return Said(memory, 1)

        def step(self, tokens, state):  # type: ignore[no-untyped-def]
            import torch

            logits = torch.zeros(len(state.rows), 1, 14)
            for number, row in enumerate(state.rows):
                logits[number, 0, row[min(state.time, len(row) - 1)]] = 9.0
            return logits, Said(state.rows, state.time + 1)

    class Said:
        def __init__(self, rows, time):  # type: ignore[no-untyped-def]
            self.rows, self.time = rows, time

        def keep(self, sentences):  # type: ignore[no-untyped-def]
            return Said([self.rows[i] for i in sentences.tolist()], self.time)

    assert reversal.exact(Copier(), [(4, 5, 4), (4, 5, 6), (7, 7, 7, 7), (4, 5)]) == 0.5
