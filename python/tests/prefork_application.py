"""What a pre-forking server loads: it encrypts while it is loaded, and again for every request."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable

from cipherlane import Encryptor

ENCRYPTOR = Encryptor.from_settings(json.loads(os.environ["PREFORK_SETTINGS"]))


def nonce() -> str:
    """Of a new envelope, in hex."""
    envelope = ENCRYPTOR.encrypt("t-prefork", b"x")
    assert envelope is not None
    return envelope[20:44].hex()


OF_THE_PARENT = nonce()


def application(_: Any, start_response: Callable[..., Any]) -> list[bytes]:
    """Answers with the process and its nonces."""
    time.sleep(0.05)  # so that one worker does not serve everybody
    start_response("200 OK", [("Content-Type", "application/json")])
    answer = {"pid": os.getpid(), "parent": OF_THE_PARENT, "nonces": [nonce() for _ in range(50)]}
    return [json.dumps(answer).encode()]
