"""What is left of a run's checkpoints when the power goes, whatever the moment and whatever had reached the disk.

    python benchmarks/power_cut.py                      the long run; writes docs/results/power_cut.json
    python benchmarks/power_cut.py --steps 3 --orders 2 --output cut.json

A recorder notes every call that makes, moves, removes or syncs a file while checkpoints are written and old ones are
removed. Then the power is cut after each of these calls. A file holds what it held when it was last synced, and nothing
if it never was. A name is on the disk for certain once its folder was synced; a later change of names may be there or
not, so each cut is tried with none of them, all of them, and some by chance. There must always be a sound checkpoint,
and none that `write` had finished may be lost for an older one.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from results_file import RESULTS, Table, write_results

from heedful.training.checkpoint import Checkpoints


@dataclass(frozen=True)
class Call:
    """One call that changes what is on the disk; `done` marks the end of writing a checkpoint instead."""

    kind: str  # sync, sync folder, make folder, move, remove, done
    path: Path
    to: Path | None = None
    content: bytes = b""
    names: tuple[str, ...] = ()
    step: int = 0


@dataclass
class Node:
    """A file or a folder: what is certain to be on the disk, and what the running system sees."""

    folder: bool
    content: bytes = b""
    seen: dict[str, Node] = field(default_factory=dict)
    certain: dict[str, Node] = field(default_factory=dict)


class Recorder:
    """Notes the calls under a folder while they are made."""

    def __init__(self, top: Path) -> None:
        self.top, self.calls = top, list[Call]()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to the calls of a block."""
        rmtree, fsync = shutil.rmtree, os.fsync

        def removed(path: Any, *rest: Any, **options: Any) -> None:
            self.calls.append(Call("remove", Path(path)))
            with mock.patch.multiple(os, unlink=originals["unlink"], rmdir=originals["rmdir"]):
                rmtree(path, *rest, **options)

        def synced(descriptor: int) -> None:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            if path.is_dir():
                self.calls.append(Call("sync folder", path, names=tuple(one.name for one in path.iterdir())))
            else:
                self.calls.append(Call("sync", path, content=path.read_bytes()))
            fsync(descriptor)

        originals = {name: getattr(os, name) for name in ("unlink", "rmdir")}
        kinds = {"mkdir": "make folder", "replace": "move", "rename": "move", "unlink": "remove", "rmdir": "remove"}
        patches: dict[str, Any] = {name: self._noted(name, kind) for name, kind in kinds.items()}
        with mock.patch.multiple(os, fsync=synced, **patches), mock.patch.object(shutil, "rmtree", removed):
            yield

    def _noted(self, name: str, kind: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def call(path: Any, *rest: Any, **options: Any) -> Any:
            found = original(path, *rest, **options)
            to = Path(rest[0]) if kind == "move" else None
            self.calls.append(Call(kind, Path(path), to))
            return found

        return call


class Disk:
    """The folder `top` as the calls up to a cut have left it."""

    def __init__(self, top: Path, chance: Callable[[], bool]) -> None:
        self.top, self.root, self.chance = top, Node(folder=True), chance

    def after(self, calls: Sequence[Call]) -> None:
        """Make the calls."""
        for call in calls:
            if call.path == self.top or self.top in call.path.parents:
                self._make(call)

    def _make(self, call: Call) -> None:
        if call.kind == "sync":
            parent, name = self._place(call.path)
            parent.seen.setdefault(name, Node(folder=False)).content = call.content
        elif call.kind == "sync folder":
            node = self._node(call.path)
            for name in call.names:
                node.seen.setdefault(name, Node(folder=False))
            node.certain = dict(node.seen)
        elif call.kind == "make folder":
            self._change(call.path, Node(folder=True))
        elif call.kind == "remove":
            self._change(call.path, None)
        elif call.kind == "move" and call.to is not None:
            parent, name = self._place(call.path)
            moved = parent.seen.get(name)
            self._change(call.path, None)
            self._change(call.to, moved)

    def _change(self, path: Path, node: Node | None) -> None:
        """Change a name; whether that reaches the disk before the folder is synced is left to chance."""
        parent, name = self._place(path)
        certain = [parent.certain] if self.chance() else []
        for names in (parent.seen, *certain):
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node

    def _place(self, path: Path) -> tuple[Node, str]:
        return self._node(path.parent), path.name

    def _node(self, path: Path) -> Node:
        node = self.root
        for name in path.relative_to(self.top).parts:
            node = node.seen[name]
        return node

    def write(self, folder: Path) -> None:
        """Lay out what is certain to be there, as a machine that starts again finds it."""
        self._write(self.root, folder)

    def _write(self, node: Node, path: Path) -> None:
        if not node.folder:
            path.write_bytes(node.content)
            return
        path.mkdir()
        for name, child in node.certain.items():
            self._write(child, path / name)


def recorded(top: Path, steps: int) -> list[Call]:
    """The calls of a run that writes so many checkpoints and keeps two."""
    recorder, kept = Recorder(top), Checkpoints(top / "run" / "checkpoints")
    with recorder.listening():
        for step in range(1, steps + 1):
            weights = {"weight": torch.full((4,), float(step))}
            kept.write(step, weights, {"moment": torch.zeros(4)}, {"step": step})
            recorder.calls.append(Call("done", top, step=step))
            kept.keep(2, best=None)
    return recorder.calls


def cuts(folder: Path, steps: int, orders: int, rng: random.Random) -> dict[str, int]:
    """Cut the power after every call, and count what was lost."""
    top = folder / "disk"
    top.mkdir()
    calls = recorded(top, steps)
    chances: list[Callable[[], bool]] = [lambda: False, lambda: True, *[lambda: rng.random() < 0.5] * orders]
    report = {"calls": len(calls), "cuts": 0, "without a sound checkpoint": 0, "a finished checkpoint lost": 0}
    for end in range(len(calls) + 1):
        finished = max((call.step for call in calls[:end] if call.kind == "done"), default=0)
        for chance in chances:
            disk, place = Disk(top, chance), folder / "after"
            disk.after(calls[:end])
            disk.write(place)
            found, _ = Checkpoints(place / "run" / "checkpoints").newest_sound()
            report["cuts"] += 1
            report["without a sound checkpoint"] += finished > 0 and found is None
            report["a finished checkpoint lost"] += (found or 0) < finished
            shutil.rmtree(place)
    return report


def main() -> None:
    """Cut at every call of a longer run, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--orders", type=int, default=20, help="changes of names that reach the disk by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "power_cut.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = cuts(Path(folder).resolve(), options.steps, options.orders, random.Random(options.seed))
    write_results(
        options.output,
        "Power cuts while checkpoints are written",
        "the power is cut after every call that changes the disk; what was not synced is lost",
        [Table(list(report), [list(report.values())])],
        arguments=f"--steps {options.steps} --orders {options.orders} --seed {options.seed}",
    )


if __name__ == "__main__":
    main()
