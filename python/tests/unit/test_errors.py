"""Errors: the codes of the specification, the text, and what survives a pickle."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from cipherlane.errors import (
    CipherlaneError,
    ConfigurationError,
    DecryptionError,
    EncryptionError,
    ErrorCode,
)
from support import REPOSITORY

SPECIFIED = re.findall(
    r"^\| ([a-z ]+) \| `([a-z-]+)` \|", (REPOSITORY / "spec" / "errors.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_code_of_the_specification_is_known_with_its_layer() -> None:
    """CL-ERR-002: spec/errors.md is the table; the layer "key id" is written key-id."""
    assert len(SPECIFIED) > 25
    assert {(code.layer, code.code) for code in ErrorCode} == {
        (layer.replace(" ", "-"), code) for layer, code in SPECIFIED
    }


def test_what_passes_by_itself() -> None:
    """CL-ERR-004."""
    assert {(code.layer, code.code) for code in ErrorCode if code.retriable} == {
        ("key-service", "key-service-unavailable"),
        ("key-service", "lease-expired"),
        ("key-service", "audit-unavailable"),
        ("key-service", "internal"),
    }


@pytest.mark.parametrize("kind", [CipherlaneError, EncryptionError, DecryptionError])
def test_the_text_names_what_is_known(kind: type[CipherlaneError]) -> None:
    bare = kind(ErrorCode.CLOSED, "the client was closed")
    assert str(bare) == "closed: the client was closed"
    full = kind(ErrorCode.KEY_UNKNOWN, "no such key", topic="t", partition=0, offset=0, kid=bytes(16))
    assert str(full) == f"key-unknown: no such key (topic t, partition 0, offset 0, kid {'00' * 16})"
    assert (full.code, full.layer, full.retriable) == ("key-unknown", "key-id", False)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_cross_process_boundaries(duplicate: object) -> None:
    full = DecryptionError(ErrorCode.KEY_UNKNOWN, "gone", topic="t", partition=1, offset=2, kid=b"k" * 16)
    for error in (full, EncryptionError(ErrorCode.INTERNAL, "x"), ConfigurationError("cipherlane.x: no")):
        again = duplicate(error)  # type: ignore[operator]
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
