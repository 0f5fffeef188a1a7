"""What a client is told when it gets no answer: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from typing import Any

from heedful.errors import HeedfulError


class Refusal(Exception):
    """A request, or one item of it, that is not answered, and why."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        remedy: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.field, self.remedy, self.retry_after = field, remedy, retry_after

    @property
    def told(self) -> dict[str, Any]:
        """As JSON."""
        told = {"code": self.code, "message": self.message, "field": self.field, "remedy": self.remedy}
        return {"status": self.status, **{name: value for name, value in told.items() if value is not None}}

    @property
    def headers(self) -> dict[str, str]:
        """What goes with the status."""
        found = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return {**found, "www-authenticate": "Bearer"} if self.status == 401 else found


def of_error(error: HeedfulError, field: str | None = None) -> Refusal:
    """An error that a user can put right; where it happened is nobody's affair but ours."""
    return Refusal(422, "not_possible", error.what, field=field, remedy=error.remedy)
