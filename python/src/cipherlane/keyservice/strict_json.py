"""JSON as the specification takes it: UTF-8, no duplicate members, integers only, at most 8 levels deep."""

from __future__ import annotations

import json
from typing import Any, NoReturn

MAX_DEPTH = 8


class StrictJsonError(ValueError):
    """Not JSON, or JSON that the specification does not take. Says nothing of the content."""


def loads(body: bytes) -> Any:  # noqa: ANN401 - JSON is any of six types
    """Reads one JSON text.

    Raises:
        StrictJsonError: the text breaks a rule
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except (ValueError, RecursionError):
        # "from None", and a new error: those of the json module carry the whole text, which may hold keys.
        raise StrictJsonError("not JSON as the specification takes it") from None
    _check_depth(value, MAX_DEPTH)
    return value


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise StrictJsonError("duplicate members")
    return found


def _refuse_number(_text: str) -> NoReturn:
    raise StrictJsonError("a number that is not an integer")


def _check_depth(value: object, levels: int) -> None:
    if not isinstance(value, (dict, list)):
        return
    if levels == 0:
        raise StrictJsonError("nested too deeply")
    for inner in value.values() if isinstance(value, dict) else value:
        _check_depth(inner, levels - 1)
