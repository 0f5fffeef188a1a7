"""The house rules, kept by a test."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from heedful.cli.main import VERBS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "heedful"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES}
# What a verb may import before it runs: itself quick, and importing nothing slow.
QUICK = (
    *("import click", "from heedful.errors", "from heedful.cli.lazy", "from heedful.cli.shared_options"),
    *("from heedful.cli.run_options", "from heedful.runs", "from heedful.serving.settings"),
    *("from __future__", "from collections", "from pathlib", "from typing"),
)
RUNS_WHAT_IT_READS = {"eval", "exec", "compile", "__import__", "torch.load", "trust_remote_code", "allow_pickle"}
PICKLES = {"pickle", "marshal", "shelve", "dill", "joblib"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "misc"}
# Whoever derives from these says what its own methods do.
OWN_MEANING = {"nn.Module", "NamedTuple"}


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


def dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def check(violations: Callable[[ast.Module], Iterable[str]], files: Sequence[Path] = SOURCES) -> None:
    """All violations of a rule in all files are told at once, a line for each."""
    found = [f"{relative(file)}: {violation}" for file in files for violation in violations(TREES[file])]
    assert files
    assert not found, "\n".join(found)


def runs_what_it_reads(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            names = {dotted(node.func), *(keyword.arg for keyword in node.keywords)}
            yield from (f"line {node.lineno}: {name}" for name in names & RUNS_WHAT_IT_READS)
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            names = {name.split(".")[0] for name in modules}
            yield from (f"line {node.lineno}: {name}" for name in names & PICKLES)


def test_nothing_that_runs_what_it_reads() -> None:
    check(runs_what_it_reads)


def test_files_are_short_and_named_after_what_they_hold() -> None:
    assert not [relative(file) for file in SOURCES if len(file.read_text(encoding="utf-8").splitlines()) > 380]
    assert not [relative(file) for file in SOURCES if file.stem in VAGUE]


def public(tree: ast.AST) -> list[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes for others to use, with their methods; those that fill in another class are its affair."""
    found: list[ast.FunctionDef | ast.ClassDef] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found.append(node)
            filled_in = isinstance(node, ast.ClassDef) and any(dotted(b) not in OWN_MEANING for b in node.bases)
            found += public(node) if isinstance(node, ast.ClassDef) and not filled_in else []
    return found


def is_field(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """A property reads as a field, and a field needs no sentence."""
    return "property" in map(dotted, node.decorator_list)


def silent(tree: ast.Module) -> Iterator[str]:
    if not ast.get_docstring(tree):
        yield "the file has no docstring"
    yield from (node.name for node in public(tree) if not ast.get_docstring(node) and not is_field(node))


def test_what_is_public_says_what_it_does() -> None:
    check(silent)


def long_functions(tree: ast.Module) -> Iterator[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    yield from (f.name for f in functions if (f.end_lineno or 0) - f.lineno > 75)


def test_functions_are_short() -> None:
    check(long_functions)


def defines_command(tree: ast.Module) -> bool:
    """Whether a file has a click command to offer; those that only help a verb have none."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "command" for node in tree.body)


CLI = PACKAGE / "cli"
COMMANDS = sorted(file for file in CLI.rglob("*.py") if defines_command(TREES[file]))


def test_every_command_is_a_verb_or_belongs_to_one() -> None:
    folders = [file.parent.name for file in COMMANDS if file.name == "__init__.py"]
    assert sorted([*folders, *(file.stem for file in COMMANDS if file.parent == CLI)]) == list(VERBS)
    assert {file.parent.name for file in COMMANDS} == {"cli", *folders}


def slow_imports(tree: ast.Module) -> Iterator[str]:
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    yield from (line for line in imports if not line.startswith(QUICK))


def test_a_command_imports_nothing_slow_at_its_top() -> None:
    check(slow_imports, COMMANDS)


BELOW = [file for file in SOURCES if not file.is_relative_to(CLI)]
COMMAND = "    heedful "  # an example for a reader, such as in a model card
OPTION = re.compile(r"(?<![\w-])--(?!local-dir)[a-z]")  # which is an option of the Hugging Face Hub's command


def option_words(tree: ast.Module) -> Iterator[str]:
    """Texts that name options; a style sheet has names that look like them, and settings say how theirs are spelled."""
    told = {id(value) for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "flags"
            for value in ast.walk(node.value)}  # fmt: skip
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    told |= {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and node.body
             and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            if COMMAND in node.value:
                continue
            yield from (f"line {node.lineno}: {found[0]}…" for found in OPTION.finditer(node.value))


def test_what_lies_below_the_command_line_does_not_speak_of_its_options() -> None:
    check(option_words, [file for file in BELOW if file.name != "style.py"])


def prints(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            yield from (f"line {node.lineno}: {name}" for name in names if name.split(".")[0] in ("click", "rich"))
        if isinstance(node, ast.Call) and dotted(node.func) == "print":
            yield f"line {node.lineno}: print"


def test_only_the_command_line_prints() -> None:
    check(prints, BELOW)


def tracked() -> list[Path]:
    """What git has or would take in, where there is git; else everything that is text by its name."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True, text=True,
        ).stdout  # fmt: skip
        return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        return [file for folder in ("heedful", "tests", "docs", "benchmarks") for file in (ROOT / folder).rglob("*.*")]


# Folders of a machine, at the start of a path: after a quote, a space or a bracket.
MACHINE_PATH = re.compile(r"""(?:^|[\s"'`(=:])/(?:work|tmp|home|root|Users|mnt)/\w""")


def test_no_file_names_a_path_of_some_machine() -> None:
    found = []
    for file in tracked():
        text = file.read_bytes().decode("utf-8", errors="ignore")
        lines = enumerate(text.splitlines(), start=1)
        found += [f"{relative(file)}:{number}" for number, line in lines if MACHINE_PATH.search(line)]
    assert not found
