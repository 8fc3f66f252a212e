"""CPU per record of client and broker: librdkafka as it is, with the drop-in, and unchanged under the preload library.

Usage: kafka_bench.py RELEASE_BUILD. Runs are interleaved; a run's ratio is to the plaintext run beside it. Broker CPU is from /proc,
over the whole run; client CPU is the load program's own count, after its warm-up.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from e2e import Bench  # noqa: E402

RUNS = int(os.environ.get("CL_BENCH_RUNS", "5"))
ROWS = ["plaintext", "drop-in", "preload"]
CASES = [("produce", 128, 1, 300_000), ("produce", 1024, 1, 100_000), ("consume", 128, 1, 300_000), ("consume", 1024, 1, 100_000),
         ("produce", 128, 64, 200_000), ("produce", 1024, 64, 100_000)]
WARM_UP = 20_000
TICKS = os.sysconf("SC_CLK_TCK")


def broker_cpu_us(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / TICKS


def machine() -> dict:
    model = next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return {"cores": os.cpu_count(), "cpu": model}


def run(bench: Bench, verb: str, row: str, size: int, count: int, connections: int) -> tuple[float, float]:
    """CPU µs per record of client and broker."""
    role = "producer" if verb == "produce" else "consumer"
    topic = f"clear.{size}" if row == "plaintext" else f"enc.{row}{size}"
    environment = {**bench.environment, "CL_SETTINGS": str(bench.settings(role))}
    if row == "preload":
        environment |= {"LD_PRELOAD": str(bench.build / "libcipherlane-rdkafka.so"), "CIPHERLANE_CONFIG": str(bench.settings(role))}
    command = [str(bench.build / "bench/kafka_load"), verb, "drop-in" if row == "drop-in" else "plain", bench.bootstrap, topic,
               str(size), str(WARM_UP), str(count), str(connections)]
    before = broker_cpu_us(bench.broker.process.pid)
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.decode()}")
    broker = (broker_cpu_us(bench.broker.process.pid) - before) / (count + WARM_UP)
    return json.loads(done.stdout)["cpu_us"] / count, broker


def measure(bench: Bench, verb: str, size: int, connections: int, count: int) -> list[dict]:
    taken: dict[str, list[tuple[float, float]]] = {row: [] for row in ROWS}
    for number in range(RUNS + 1):
        for row in ROWS:
            result = run(bench, verb, row, size, count, connections)
            if number > 0:  # the first is the broker's warm-up
                taken[row].append(result)
    rows = []
    for row in ROWS:
        totals = [sum(result) for result in taken[row]]
        ratios = [sum(mine) / sum(plain) for mine, plain in zip(taken[row], taken["plaintext"], strict=True)]
        entry = {"case": f"{verb}/{size}B/{connections}conn", "row": "plaintext" if row == "plaintext" else f"encrypted ({row})",
                 "value": round(statistics.median(totals), 3), "min": round(min(totals), 3), "max": round(max(totals), 3),
                 "client": round(statistics.median(client for client, _ in taken[row]), 3),
                 "broker": round(statistics.median(broker for _, broker in taken[row]), 3)}
        if row != "plaintext":
            entry |= {"baseline": "plaintext", "ratio": round(statistics.median(ratios), 3)}
        rows.append(entry)
        print(json.dumps(entry), file=sys.stderr, flush=True)
    return rows


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    folder = Path(tempfile.mkdtemp(prefix="cipherlane-c-bench-"))
    topics = [f"{kind}{size}" for size in (128, 1024) for kind in ("clear.", "enc.drop-in", "enc.preload")]
    try:
        bench = Bench(build, folder, [f"{topic}:1" for topic in topics])
        try:
            rows = [row for verb, size, connections, count in CASES for row in measure(bench, verb, size, connections, count)]
        finally:
            bench.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"benchmark": "c-kafka", "unit": "cpu_us_per_record", "runs": RUNS, "machine": machine(), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
