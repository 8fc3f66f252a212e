"""Where the specification and the tests that name its MUSTs lie; the vectors, loaded once."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Vector = dict[str, Any]
TESTS = (
    "java/**/src/test/**/*",
    "python/tests/**/*.py",
    "c/tests/*",
    "keyservice/**/*_test.go",
    "conformance-tests/**/*",
    "spec/tests/**/*.py",
)
NOT_SOURCES = {".venv", "target", "build", "__pycache__"}
SOURCE_MAX = 1 << 20  # a larger file is not a source


@dataclass(frozen=True)
class Tree:
    """A checkout: `root` holds spec/, java/, python/ and so on."""

    root: Path

    @property
    def spec(self) -> Path:
        return self.root / "spec"

    def prose(self) -> list[Path]:
        """The Markdown of the specification."""
        return self._sources("spec/**/*.md")

    def tests(self) -> list[Path]:
        """The sources that may name the MUSTs they cover."""
        return [path for pattern in TESTS for path in self._sources(pattern)]

    @cached_property
    def files(self) -> dict[str, Any]:
        """The vector files by name; raises ValueError if one is not JSON."""
        return {
            path.name: json.loads(path.read_text("utf-8")) for path in sorted((self.spec / "vectors").glob("*.json"))
        }

    def vectors(self) -> list[tuple[str, Vector]]:
        """All vectors with their kind."""
        return [(file["kind"], vector) for file in self.files.values() for vector in file["vectors"]]

    def name(self, path: Path) -> str:
        """The path as it is printed."""
        return path.relative_to(self.root).as_posix()

    def _sources(self, pattern: str) -> list[Path]:
        found = (
            path for path in sorted(self.root.glob(pattern)) if path.is_file() and path.stat().st_size <= SOURCE_MAX
        )
        return [path for path in found if not NOT_SOURCES & set(path.relative_to(self.root).parts)]
