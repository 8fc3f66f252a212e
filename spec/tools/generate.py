"""Writes spec/vectors/*.json: python generate.py [FOLDER]. The same bytes every time."""

import importlib
import json
import sys
from pathlib import Path

from vectorgen.vector import Vector

KINDS = (
    "key-id",
    "xaes",
    "encrypt",
    "write",
    "decrypt",
    "encryption-key-answer",
    "decryption-keys-answer",
    "topic",
)
VECTORS = Path(__file__).resolve().parent.parent / "vectors"


def vectors_of(kind: str) -> list[Vector]:
    """All vectors of a kind, in their order."""
    program = importlib.import_module("vectorgen." + kind.replace("-", "_"))
    return list(program.vectors())


def file_text(kind: str) -> str:
    """The file KIND.json: one vector a line, ASCII."""
    lines = ",\n".join("  " + json.dumps(vector) for vector in vectors_of(kind))
    return f'{{"kind": "{kind}", "vectors": [\n{lines}\n]}}\n'


def main(folder: Path) -> None:
    for kind in KINDS:
        (folder / f"{kind}.json").write_text(file_text(kind), encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS)
