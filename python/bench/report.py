"""What the benchmarks of this folder share: medians, the machine, and the one line of JSON."""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any, Sequence

Row = dict[str, Any]


def compare(case: str, names: Sequence[str], measured: Sequence[Sequence[float]]) -> list[Row]:
    """The rows of a case from interleaved runs: first the baseline, then what is compared with it."""
    found = [{"case": case, "row": name, **summary(values)} for name, values in zip(names, zip(*measured))]
    for index, row in enumerate(found[1:], 1):
        ratio = statistics.median(run[index] / run[0] for run in measured)
        row |= {"baseline": names[0], "ratio": round(ratio, 3)}
        print(f"{case}: {names[index]} / {names[0]} {ratio:.2f}", file=sys.stderr)
    return found


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {
        "value": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }


def publish(name: str, unit: str, runs: int, rows: Sequence[Row]) -> None:
    """Prints the result as the last line, and writes it to build/bench."""
    machine = {"cores": os.cpu_count(), "cpu": _processor(), "python": sys.version.split()[0], "openssl": _openssl()}
    line = json.dumps({"benchmark": name, "unit": unit, "runs": runs, "machine": machine, "rows": list(rows)})
    folder = Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(line + "\n", encoding="utf-8")
    print(line)


def _openssl() -> str:
    """Of the cipher in C, which the benchmark of peers has not."""
    try:
        return str(importlib.import_module("cipherlane_native").OPENSSL)
    except ImportError:
        return "none"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
