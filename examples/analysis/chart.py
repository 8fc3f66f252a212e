"""Read an encrypted topic into a pandas table and draw a chart of it.

Whoever may read the topic sees a table like any other; whoever may not sees nothing, and the program says why.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws into files, also where there is no screen

import pandas as pd
from cipherlane.confluent import Consumer, DecryptionError
from matplotlib import pyplot as plt

PATIENCE_SECONDS = 30
HEALTH = {"health_good": "good", "health_fair": "fair", "health_poor": "poor"}


def read(configuration: dict[str, Any], topic: str, count: int) -> pd.DataFrame:
    """The first `count` records of a topic; raises DecryptionError if one cannot be read, RuntimeError if some lack."""
    rows: list[dict[str, float]] = []
    give_up = time.monotonic() + PATIENCE_SECONDS
    with Consumer(configuration) as consumer:
        consumer.subscribe([topic])
        while len(rows) < count and time.monotonic() < give_up:
            for message in consumer.consume(min(1000, count - len(rows)), 0.5):
                if message.error() is not None:
                    raise RuntimeError(message.error())
                rows.append(json.loads(message.value() or b""))
    if len(rows) < count:
        raise RuntimeError(f"only {len(rows)} of {count} records came")
    return pd.DataFrame(rows)


def visits(claims: pd.DataFrame) -> pd.DataFrame:
    """Mean visits to the doctor in a year, by the health that people state and by whether they pay a share."""
    health = pd.Series("excellent", index=claims.index)
    for column, name in HEALTH.items():
        health[claims[column] == 1] = name
    order = ["excellent", *HEALTH.values()]
    named = claims.assign(
        health=pd.Categorical(health, order, ordered=True),
        plan=(claims["log_coinsurance"] > 0).map({True: "pays a share", False: "free care"}),
    )
    return named.pivot_table("visits_to_doctor", index="health", columns="plan", aggfunc="mean", observed=False)


def draw(table: pd.DataFrame, count: int, file: Path) -> None:
    """Writes the chart as a PNG."""
    axes = table.plot.bar(figsize=(8, 4.5), rot=0, color=["#4878a8", "#e08a3c"], width=0.75)
    axes.set_title(f"Visits to the doctor, {count:,} person-years read from an encrypted topic")
    axes.set_xlabel("health, as people state it")
    axes.set_ylabel("mean visits a year")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.1)
    axes.legend(title=None, frameon=False)
    for bars in axes.containers:
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=9)  # type: ignore[arg-type]
    plt.tight_layout()
    plt.savefig(file, dpi=120)


def main(arguments: list[str]) -> int:
    if len(arguments) != 4:
        print("usage: chart.py CONFIGURATION.json TOPIC COUNT CHART.png", file=sys.stderr)
        return 2
    configuration, topic, count, chart = arguments
    try:
        claims = read(json.loads(Path(configuration).read_text()), topic, int(count))
    except DecryptionError as error:
        print(f"not allowed to see this: {error}", file=sys.stderr)
        return 1
    table = visits(claims)
    print(table.round(2).to_string())
    draw(table, len(claims), Path(chart))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
