"""What the benchmarks of this folder share: medians, the machine, and the one line of JSON."""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any, Sequence

Row = dict[str, Any]


def pair(case: str, rows: tuple[str, str], measured: Sequence[tuple[float, float]], **more: Any) -> list[Row]:  # noqa: ANN401
    """Two rows of a case from interleaved runs: the baseline, and what is compared with it."""
    baseline, ours = rows
    ratio = statistics.median(second / first for first, second in measured)
    print(f"{case}: {ours} / {baseline} {ratio:.2f}", file=sys.stderr)
    return [
        {"case": case, "row": baseline, **summary([first for first, _ in measured])},
        {
            "case": case,
            "row": ours,
            **summary([second for _, second in measured]),
            "baseline": baseline,
            "ratio": round(ratio, 3),
            **more,
        },
    ]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {
        "value": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }


def publish(name: str, unit: str, runs: int, rows: Sequence[Row]) -> None:
    """Prints the result as the last line, and writes it to build/bench."""
    machine = {"cores": os.cpu_count(), "cpu": _processor(), "python": sys.version.split()[0]}
    line = json.dumps({"benchmark": name, "unit": unit, "runs": runs, "machine": machine, "rows": list(rows)})
    folder = Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(line + "\n", encoding="utf-8")
    print(line)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
