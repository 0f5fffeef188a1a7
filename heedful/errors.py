"""The one exception that is meant for the user: what happened, where, and what to do about it; and a warning."""


class TextWarning(UserWarning):
    """Something in a file of text that may not be what the user means."""


class HeedfulError(Exception):
    """Something the user can put right. The command line prints it without a traceback."""

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        lines = [what]
        if where is not None:
            lines.append(f"  where:  {where}")
        if remedy is not None:
            lines.append(f"  remedy: {remedy}")
        super().__init__("\n".join(lines))
