"""The error of the model: a code of errors.md."""


class Refused(Exception):
    """What a reader, a writer or an SDK ends in; `code` is a code of errors.md."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
