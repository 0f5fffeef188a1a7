"""What `shard` does not go with is refused by its name, before any data is read: none of these files exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import HeedfulError

FINETUNE: dict[str, Any] = {"task": "classify", "model": "no-model", "train": "no.tsv", "output": "no-run"}
TRANSLATE: dict[str, Any] = {"train": "no.tsv", "output": "no-run"}


@pytest.mark.parametrize(
    ("call", "settings", "said"),
    [
        ("finetune", {**FINETUNE, "features": (-1,)}, "`features` are computed by the whole model"),
        ("finetune", {**FINETUNE, "budget": "10m"}, "a `budget` of time"),
        ("finetune", {**FINETUNE, "task": "embed", "seeds": 3}, "embed does not go with `shard`"),
        ("finetune", {**FINETUNE, "seeds": 3}, "let torchrun start several"),
        ("finetune", {**FINETUNE, "sweep": {"shard": "true,false"}}, "no such field"),
        ("train_translator", {**TRANSLATE, "budget": "10m"}, "a `budget` of time"),
        ("train_translator", TRANSLATE, "let torchrun start several"),
    ],
)
def test_what_slices_cannot_do_is_refused(
    call: str, settings: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "torchrun" not in said:
        monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(HeedfulError) as raised:
        getattr(heedful, call)(**settings, shard=True)
    assert said in str(raised.value)
    assert not (tmp_path / "no-run").exists()
