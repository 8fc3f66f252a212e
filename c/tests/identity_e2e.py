"""Clients that renew their certificate, against a real key service with certificates of ten seconds.

Usage: identity_e2e.py BUILD_FOLDER RESULTS_FOLDER [CASE …]. Covers CL-IDN-030 to CL-IDN-036. Writes JUnit XML.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from kafka_e2e import ROOT, Server, check, run_cases

POLICY = """version: 1
topics:
  - topics: ["enc.*"]
    mode: encrypt
lease: {expires_in: 2s}
grants:
  - principals: ["spiffe://dev.cipherlane/**"]
    actions: [encrypt, decrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/**"]
    actions: [certificate]
    lifetime: 10s
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [admin]
"""
CONFIGURATION = """listen: 127.0.0.1:8443
tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
certificates: {ca: embedded, bootstrap_tokens: true}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: kek.json}}
audit: {file: audit.jsonl}
"""
BINARIES = ROOT / "keyservice/build/bin"


class Bench:
    """A key service that can be stopped and started at the same address."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.build, self.folder, self.pki = build, folder, folder / "pki"
        self.pki.mkdir(mode=0o700)
        for name, text in (("policy.yaml", POLICY), ("keyservice.yaml", CONFIGURATION)):
            (self.pki / name).write_text(text)
            (self.pki / name).chmod(0o600)
        self.listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self.keys = Server(str(BINARIES / "cipherlane-keyservice"), "dev", "--dir", str(self.pki), "--json", "--until-stdin-closes",
                           "--listen", self.listen)
        self.listen = self.keys.says["url"].removeprefix("https://")

    def stop(self) -> None:
        self.keys.stop()

    def token(self, principal: str) -> Path:
        operator = self.keys.says["principals"]["operator"]
        done = subprocess.run(
            [str(BINARIES / "cipherlane"), "token", "create", f"spiffe://dev.cipherlane/{principal}", "--json", "--url", self.keys.says["url"],
             "--ca", self.keys.says["ca"], "--certificate", operator["certificate"], "--key", operator["key"]],
            capture_output=True, check=True, timeout=30)
        path = self.folder / f"{principal}.token"
        path.write_text(json.loads(done.stdout)["token"] + "\n")
        return path

    def settings(self, name: str, *more: str) -> Path:
        path = self.folder / f"{name}.properties"
        path.write_text("\n".join([f"cipherlane.keyservice.urls={self.keys.says['url']}", f"cipherlane.keyservice.tls.ca={self.keys.says['ca']}",
                                   "cipherlane.keyservice.request.timeout.ms=2000", "cipherlane.keys.retry.backoff.ms=200", *more, ""]))
        return path

    def issued(self, principal: str) -> int:
        """Certificates that the audit log says this principal was given."""
        entries = [json.loads(line) for line in (self.pki / "audit.jsonl").read_text().splitlines()]
        return sum(1 for entry in entries if entry.get("principal", "").endswith(f"/{principal}") and "serial" in entry)


class Client:
    """A running identity_client."""

    def __init__(self, bench: Bench, settings: Path) -> None:
        self.process = subprocess.Popen([str(bench.build / "asan/tests/identity_client"), str(settings)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        check(code == 0, f"identity_client ended with {code}")

    def tell(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def works(self, seconds: float) -> None:
        """Encrypts all the time; every call is answered."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            said = self.tell("encrypt")
            check(said == "ok", said)
            time.sleep(0.2)

    def fails(self, *words: str, within: float) -> None:
        """Waits until encrypting fails with these words."""
        end = time.monotonic() + within
        said = ""
        while time.monotonic() < end:
            said = self.tell("encrypt")
            if all(word in said for word in words):
                return
            time.sleep(0.2)
        raise AssertionError((said, words))

    def recovers(self, within: float) -> None:
        end = time.monotonic() + within
        said = ""
        while time.monotonic() < end and said != "ok":
            said = self.tell("encrypt")
            time.sleep(0.2)
        check(said == "ok", said)


def first_by_token(bench: Bench) -> None:
    """A token gives the first certificate, which gives the next ones; calls never fail meanwhile."""
    token = bench.token("newcomer")
    with Client(bench, bench.settings("newcomer", f"cipherlane.identity.token.file={token}")) as client:
        check(client.tell("open") == "ok", "open")
        client.works(13)
        check(0 < int(client.tell("left")) <= 10, "no time left")
        check(client.tell("fork") == "ok", "a child has what its parent had")
    check(bench.issued("newcomer") >= 3, bench.issued("newcomer"))
    with Client(bench, bench.folder / "newcomer.properties") as client:
        check(client.tell("open") == "ok", "open")
        client.fails("key-service-unavailable", "401", within=5)
        client.fails("key-service-unavailable", "this token was used", within=5)
        bench.token("newcomer")
        client.recovers(within=10)


def first_by_certificate(bench: Bench) -> None:
    """A hundred clients, one certificate; files renewed beside them help after an outage that outlived it."""
    producer = bench.keys.says["principals"]["producer"]
    settings = bench.settings("producer", "cipherlane.identity.renew=true", f"cipherlane.keyservice.tls.certificate={producer['certificate']}",
                              f"cipherlane.keyservice.tls.key={producer['key']}")
    before = bench.issued("producer")
    with Client(bench, settings) as client:
        for _ in range(50):
            check(client.tell("open") == "ok", "open")
        client.works(1)
        check(bench.issued("producer") == before + 1, "more than one certificate")
        bench.stop()
        client.fails("key-service-unavailable", "has ended", within=20)
        bench.start()
        client.recovers(within=10)


def nothing_to_prove_with(bench: Bench) -> None:
    for name, text in (("empty", ""), ("words", "two words\n"), ("wrong", "clbt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n")):
        path = bench.folder / f"{name}.token"
        path.write_text(text)
        with Client(bench, bench.settings(name, f"cipherlane.identity.token.file={path}")) as client:
            check(client.tell("open") == "ok", "open")
            client.fails("key-service-unavailable", "401" if name == "wrong" else "identity.token.file", within=5)


def main() -> int:
    build, results = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    return run_cases("identity_e2e", results, sys.argv[3:], [nothing_to_prove_with, first_by_token, first_by_certificate],
                     lambda folder: Bench(build, folder))


if __name__ == "__main__":
    sys.exit(main())
