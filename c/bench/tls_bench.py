"""CPU per record of client and broker for TLS to the broker: none, librdkafka's own with a certificate in files, ours under the key service's certificate.

Usage: tls_bench.py RELEASE_BUILD. No payload is encrypted, so that the rows differ in TLS alone. Runs are interleaved; a run's ratio is to the plaintext run beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from identity_e2e import Bench  # noqa: E402
from kafka_bench import RUNS, WARM_UP, broker_cpu_us, machine  # noqa: E402

ROWS = ["plaintext", "librdkafka-tls", "cipherlane-tls"]
CASES = [("produce", 128, 300_000), ("produce", 1024, 150_000), ("consume", 128, 300_000), ("consume", 1024, 150_000)]


def settings(bench: Bench, row: str) -> Path:
    operator = bench.keys.says["principals"]["operator"]
    files = [f"cipherlane.keyservice.tls.certificate={operator['certificate']}", f"cipherlane.keyservice.tls.key={operator['key']}"]
    if row == "librdkafka-tls":
        files += ["security.protocol=ssl", f"ssl.ca.location={bench.folder}/localhost.ca.pem", f"ssl.certificate.location={bench.folder}/client.pem",
                  f"ssl.key.location={bench.folder}/client.key"]
    elif row == "cipherlane-tls":
        files += ["security.protocol=ssl", "cipherlane.identity.renew=true"]
    return bench.settings(row, *files)


def run(bench: Bench, verb: str, row: str, size: int, count: int) -> tuple[float, float, float]:
    """CPU µs per record of client and broker, and records per second."""
    command = [str(bench.build / "bench/kafka_load"), verb, "drop-in", bench.brokers[0].says["bootstrap"] if row == "plaintext" else bench.bootstrap, f"clear.{row}{size}",
               str(size), str(WARM_UP), str(count), "1"]
    before = broker_cpu_us(bench.brokers[0].process.pid)
    done = subprocess.run(command, env={**os.environ, "CL_SETTINGS": str(settings(bench, row))}, capture_output=True, timeout=180, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.decode()}")
    broker = (broker_cpu_us(bench.brokers[0].process.pid) - before) / (count + WARM_UP)
    told = json.loads(done.stdout)
    return told["cpu_us"] / count, broker, count / told["seconds"]


def measure(bench: Bench, verb: str, size: int, count: int) -> list[dict]:
    taken: dict[str, list[tuple[float, float, float]]] = {row: [] for row in ROWS}
    for number in range(RUNS + 1):
        for row in ROWS:
            result = run(bench, verb, row, size, count)
            if number > 0:  # the first is the broker's warm-up
                taken[row].append(result)
    rows = []
    for row in ROWS:
        totals = [client + broker for client, broker, _ in taken[row]]
        plain = [client + broker for client, broker, _ in taken["plaintext"]]
        entry = {"case": f"{verb}/{size}B", "row": row, "value": round(statistics.median(totals), 3), "min": round(min(totals), 3),
                 "max": round(max(totals), 3), "client": round(statistics.median(each[0] for each in taken[row]), 3),
                 "broker": round(statistics.median(each[1] for each in taken[row]), 3),
                 "records_per_second": round(statistics.median(each[2] for each in taken[row]))}
        if row != "plaintext":
            entry |= {"baseline": "plaintext", "ratio": round(statistics.median(mine / theirs for mine, theirs in zip(totals, plain, strict=True)), 3)}
        rows.append(entry)
        print(json.dumps(entry), file=sys.stderr, flush=True)
    return rows


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="cipherlane-c-bench-") as name:
        bench = Bench(Path(sys.argv[1]).resolve(), Path(name), lifetime="1h")
        try:
            bench.bootstrap = bench.broker("localhost", [f"clear.{row}{size}:1" for row in ROWS for size in (128, 1024)], "-Xms1g", "-Xmx1g")  # whose compiler knows AES
            bench.certificate("client", "")
            rows = [row for verb, size, count in CASES for row in measure(bench, verb, size, count)]
        finally:
            bench.stop()
    print(json.dumps({"benchmark": "c-tls", "unit": "cpu_us_per_record", "runs": RUNS, "machine": machine(), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
