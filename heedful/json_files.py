"""JSON files, read with errors that name the place and written for people to read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError

_REMEDY = "fix the file or fetch it again"


def read_json(path: Path) -> dict[str, Any]:
    """The object a JSON file holds."""
    value = read_json_value(path)
    if not isinstance(value, dict):
        raise HeedfulError("the file does not hold a JSON object {…}", where=path, remedy=_REMEDY)
    return value


def read_json_value(path: Path) -> Any:
    """Whatever a JSON file holds; text that is not JSON or not UTF-8 is refused with its place."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise HeedfulError(f"not JSON: {error.msg}", where=f"{path}:{error.lineno}", remedy=_REMEDY) from error
    except UnicodeDecodeError as error:
        raise HeedfulError(f"not UTF-8 at byte {error.start}", where=path, remedy="save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise HeedfulError(f"not readable JSON: {error}", where=path, remedy=_REMEDY) from error
    except OSError as error:
        raise HeedfulError(f"cannot read {path.name}: {error.strerror}", where=path, remedy="check the path") from error


def write_json(path: Path, value: Any) -> None:
    """Write `value` readably; Chinese stays Chinese."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def finite(value: Any) -> Any:
    """The same with null, which JSON can say, for every number that is infinite or none."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
