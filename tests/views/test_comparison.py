"""Several runs on one page."""

import json

import pytest
from click.testing import CliRunner

from heedful.cli.report import command
from heedful.errors import HeedfulError
from heedful.views.comparison import read_runs, write_comparison


def a_run(folder, values, kept=None):
    folder.mkdir(parents=True)
    lines = [json.dumps({"step": step, "evaluation": {"f1": value}}) for step, value in enumerate(values, start=1)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    if kept is not None:
        (folder / "scores.json").write_text(json.dumps({"f1": kept}))
    return folder


def test_the_kept_scores_count_and_else_the_last_ones(tmp_path):
    runs = read_runs([a_run(tmp_path / "kept", [0.9, 0.4], kept=0.9), a_run(tmp_path / "plain", [0.9, 0.4])])
    assert [run.scores["f1"] for run in runs] == [0.9, 0.4]


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    runs = read_runs([a_run(tmp_path / "a" / "run", [1.0]), a_run(tmp_path / "b" / "run", [1.0])])
    assert [run.name for run in runs] == ["a/run", "b/run"]


def test_the_page_has_a_row_and_a_curve_for_each_run(tmp_path):
    folders = [a_run(tmp_path / "one", [0.25, 0.5]), a_run(tmp_path / "two <b>", [0.125, 0.75])]
    page = write_comparison(read_runs(folders), tmp_path / "all.html").read_text(encoding="utf-8")
    assert "0.5000" in page and "0.7500" in page
    assert "two &lt;b&gt;" in page and "<b>" not in page
    assert 'class="c0 curve"' in page and 'class="c1 curve"' in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_the_command_prints_the_table_and_the_path(tmp_path):
    folders = [str(a_run(tmp_path / name, [0.5])) for name in ("one", "two")]
    done = CliRunner().invoke(command, [*folders, "-o", str(tmp_path / "all.html")])
    assert done.exit_code == 0 and "one" in done.stdout and "0.5000" in done.stdout
    assert (tmp_path / "all.html").exists()


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(HeedfulError, match="no run"):
        read_runs([tmp_path])
