"""`heedful report`."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from heedful.cli.report import command
from heedful.errors import HeedfulError


def test_it_writes_the_page_and_prints_its_path(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "losses": {"mlm": 2.5}}\n')
    done = CliRunner().invoke(command, [str(tmp_path)])
    assert done.exit_code == 0 and done.stdout == f"{tmp_path / 'report.html'}\n"
    assert "mlm" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", "missing"])
def test_a_folder_without_a_run_is_refused_and_left_alone(tmp_path, name):
    failed = CliRunner().invoke(command, [str(tmp_path / name)])
    assert isinstance(failed.exception, HeedfulError) and "no run" in str(failed.exception)
    assert not list(tmp_path.iterdir())


def test_it_does_not_need_torch():
    code = "import sys, heedful.views.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
