"""An unmodified client and broker, with a sidecar beside each: compare with the input, look at the wire between."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from demo import small
from demo.disk import windows
from demo.services import ROOT, broker_command, running
from sidecar.tap import Tap

SIDECAR = ROOT / "keyservice/build/bin/cipherlane-sidecar"
COUNT = 500


def certificates(folder: Path) -> None:
    """Make a CA and a certificate for each sidecar, as any CA of a company would."""
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    signed = ["-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key"), "-addext", "basicConstraints=CA:FALSE"]
    for name, more in {"ca": [], "client-side": signed, "broker-side": signed}.items():
        names = f"subjectAltName=IP:127.0.0.1,URI:spiffe://example.org/{name}"
        subprocess.run(
            [*new, "-subj", f"/CN={name}", "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem"),
             *more, *(["-addext", names] if more else [])],
            check=True, capture_output=True,
        )  # fmt: skip


def sidecar(folder: Path, name: str, settings: str) -> Any:
    """Start a sidecar with a configuration; it prints where it listens."""
    file = folder / f"{name}.yaml"
    file.write_text(
        f"{settings}\nadmin_listen: 127.0.0.1:0\ntls: {{ca: ca.pem, certificate: {name}.pem, key: {name}.key}}\n"
    )
    file.chmod(0o600)
    command = [str(SIDECAR), "run", "--config", str(file), "--json", "--until-stdin-closes"]
    return running(name, command, folder / f"{name}.log")


def kcat(bootstrap: str, *arguments: str, lines: str = "") -> list[str]:
    """An ordinary Kafka client, which speaks plaintext."""
    done = subprocess.run(
        ["kcat", "-q", "-b", bootstrap, "-t", "claims", *arguments],
        check=True, input=lines, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.stdout.splitlines()


def main() -> int:
    records = small.records(COUNT)
    with tempfile.TemporaryDirectory() as name, Tap() as wire:
        folder = Path(name)
        certificates(folder)
        with running("broker", broker_command("claims:1"), folder / "broker.log") as broker:
            # Clients are told the address of the wire between the sidecars: all that they send crosses it.
            near_broker = (
                f"side: broker\nkafka: {{listen: '127.0.0.1:0', upstream: ['{broker['bootstrap']}'],"
                f" brokers: {{port: {wire.port}}}}}"
            )
            with sidecar(folder, "broker-side", near_broker) as far:
                wire.to(far["kafka"])
                near_client = (
                    f"side: client\nkafka: {{listen: '127.0.0.1:0', upstream: ['127.0.0.1:{wire.port}'],"
                    f" brokers: {{base_port: {wire.port + 1}}}}}"
                )
                with sidecar(folder, "client-side", near_client) as near:
                    kcat(near["kafka"], "-P", lines="\n".join(records) + "\n")
                    found = kcat(near["kafka"], "-C", "-o", "beginning", "-e")
        holds = small.compare(records, found, "records")
        holds &= wire.is_tls(windows(records))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
