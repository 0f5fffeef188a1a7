"""Configs in TOML files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heedful.config import read_toml, write_toml
from heedful.errors import HeedfulError
from heedful.training.training_config import TrainingConfig


@dataclass(frozen=True)
class Everything:
    training: TrainingConfig
    phases: tuple[tuple[int, float], ...] = ((128, 0.9), (512, 0.1))
    name: str | None = None
    tags: dict[str, int] = field(default_factory=dict)


def test_nested_configs_come_back_as_they_were(tmp_path: Path) -> None:
    config = Everything(TrainingConfig(steps=7, best="loss", learning_rate=3e-5), name="中文", tags={"a": 1})
    write_toml(config, tmp_path / "config.toml")
    assert read_toml(Everything, tmp_path / "config.toml") == config
    write_toml(Everything(TrainingConfig(steps=7)), tmp_path / "config.toml")
    assert read_toml(Everything, tmp_path / "config.toml").name is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[training]\nsteps = 5\nlerning_rate = 1.0", "did you mean 'learning_rate'"),
        ("[training]\nsteps = true", "steps is True"),
        ("[training]\nsteps = 5\nschedule = 'liner'", "not one of 'linear'"),
        ("[training]\nsteps = 5\n[name]\nx = 1", "name is"),
        ("phases = [[128, 0.5, 3]]\n[training]\nsteps = 5", "phases is"),
        ("training = 3", "training is 3"),
        ("name = 'x'", "missing training"),
        ("[training\n", "not TOML"),
        ("[training]\nsteps = 0", "steps is 0"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(HeedfulError, match=said):
        read_toml(Everything, path)


def test_a_file_that_is_not_there_or_not_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="cannot read"):
        read_toml(TrainingConfig, tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"steps = 5 # \xff")
    with pytest.raises(HeedfulError, match="UTF-8"):
        read_toml(TrainingConfig, tmp_path / "bad.toml")
