"""Clients that renew their certificate, against a real key service with certificates of ten seconds.

Usage: identity_e2e.py BUILD_FOLDER RESULTS_FOLDER [CASE …]. Covers CL-IDN-030 to CL-IDN-036, CL-TLS-010, CL-TLS-011, CL-TLS-012. Writes JUnit XML.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from e2e import ROOT, Server, check, run_cases

POLICY = """version: 1
topics:
  - topics: ["enc.*"]
    mode: encrypt
  - topics: ["clear.*"]
    mode: clear
lease: {expires_in: 2s}
grants:
  - principals: ["spiffe://dev.cipherlane/**"]
    actions: [encrypt, decrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [certificate]
    server_names: [localhost, elsewhere.example, 127.0.0.1]
  - principals: ["spiffe://dev.cipherlane/**"]
    actions: [certificate]
    lifetime: LIFETIME
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

    def __init__(self, build: Path, folder: Path, lifetime: str = "10s") -> None:
        self.build, self.folder, self.pki = build, folder, folder / "pki"
        self.pki.mkdir(mode=0o700)
        for name, text in (("policy.yaml", POLICY.replace("LIFETIME", lifetime)), ("keyservice.yaml", CONFIGURATION)):
            (self.pki / name).write_text(text)
            (self.pki / name).chmod(0o600)
        self.listen = "127.0.0.1:0"
        self.brokers: list[Server] = []
        self.start()

    def start(self) -> None:
        self.keys = Server(str(BINARIES / "cipherlane-keyservice"), "dev", "--dir", str(self.pki), "--json", "--until-stdin-closes",
                           "--listen", self.listen)
        self.listen = self.keys.says["url"].removeprefix("https://")

    def stop(self) -> None:
        for broker in self.brokers:
            broker.stop()
        self.keys.stop()

    def certificate(self, name: str, alternative: str) -> tuple[Path, Path]:
        """NAME.pem, NAME.key, both in one file for Kafka, and the CAs: for the operator, and perhaps for a server of these alternative names."""
        operator = self.keys.says["principals"]["operator"]
        key, csr, store, ca = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "store.pem", "ca.pem"))
        names = ["-addext", f"subjectAltName={alternative}"] if alternative else []
        subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key), "-out", str(csr),
                        "-subj", "/", *names], check=True, capture_output=True)
        context = ssl.create_default_context(cafile=self.keys.says["ca"])
        context.load_cert_chain(operator["certificate"], operator["key"])
        request = urllib.request.Request(self.keys.says["url"] + "/v1/certificate", json.dumps({"csr": csr.read_text()}).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, context=context, timeout=10) as response:
            answer = json.load(response)
        (self.folder / f"{name}.pem").write_text(answer["certificate"])
        store.write_text(key.read_text() + answer["certificate"])
        ca.write_text(answer["ca"])
        return store, ca

    def broker(self, name: str, topics: list[str], *flags: str) -> str:
        """Starts a broker (a quick one, or with these flags of Java) with a listener that demands client certificates; gives back its address."""
        store, ca = self.certificate(name, f"DNS:{name}" + (",IP:127.0.0.1" if name == "localhost" else ""))
        settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": store, "ssl.truststore.type": "PEM", "ssl.truststore.location": ca,
                    "ssl.client.auth": "required"}
        more = [part for key, value in settings.items() for part in ("--set", f"listener.name.tls.{key}={value}")]
        self.brokers.append(Server(
            "java", *(flags or ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")), "-jar", str(ROOT / "java/broker/target/cipherlane-broker.jar"),
            "--until-stdin-closes", "--topics", ",".join(topics), "--listener", "TLS:SSL", *more))
        return self.brokers[-1].says["listeners"]["TLS"].replace("127.0.0.1", "localhost")

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

    def refused(self) -> int:
        """Calls of nobody in the audit log."""
        return (self.pki / "audit.jsonl").read_text().count('"unauthenticated"')


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
        client.works(15)  # the third certificate of ten seconds is asked for after 13.3 s at the latest
        check(0 < int(client.tell("left")) <= 10, "no time left")
        check(client.tell("fork") == "ok", "a child has what its parent had")
    check(bench.issued("newcomer") >= 3, bench.issued("newcomer"))
    with Client(bench, bench.folder / "newcomer.properties") as client:
        check(client.tell("open") == "ok", "open")
        client.fails("key-service-unavailable", "401", within=15)
        client.fails("key-service-unavailable", "this token was used", within=15)
        bench.token("newcomer")
        client.recovers(within=20)


def one_after_another(bench: Bench) -> None:
    """[CL-IDN-037] A token serves clients of which each is closed before the next is opened; what is spent stays spent."""
    token = bench.token("relay")
    refused = bench.refused()
    with Client(bench, bench.settings("relay", f"cipherlane.identity.token.file={token}")) as client:
        for _ in range(3):
            check(client.tell("open") == "ok", "open")
            client.works(1)
            check(client.tell("close") == "ok", "close")
        time.sleep(10.5)  # the certificate that was left ends meanwhile
        check(client.tell("open") == "ok", "open")
        client.fails("key-service-unavailable", "this token was used", within=15)
        bench.token("relay")
        client.recovers(within=20)
    check(bench.refused() == refused, "a spent token was sent again")


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
        client.recovers(within=20)


def nothing_to_prove_with(bench: Bench) -> None:
    for name, text in (("empty", ""), ("words", "two words\n"), ("wrong", "clbt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n")):
        path = bench.folder / f"{name}.token"
        path.write_text(text)
        with Client(bench, bench.settings(name, f"cipherlane.identity.token.file={path}")) as client:
            check(client.tell("open") == "ok", "open")
            client.fails("key-service-unavailable", "401" if name == "wrong" else "identity.token.file", within=15)


def run_tls(bench: Bench, bootstrap: str, topic: str, seconds: int, settings: Path, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(bench.build / "asan/tests/tls_client"), bootstrap, topic, str(seconds), str(settings), *more],
                          capture_output=True, text=True, timeout=60 + seconds, check=False)


def kafka(bench: Bench) -> None:
    """Records flow while certificates of ten seconds come and go; wrong peers are refused, and said to be."""
    bootstrap = bench.broker("localhost", ["enc.tls:1", "enc.ids:1"])
    settings = bench.settings("speaker", f"cipherlane.identity.token.file={bench.token('speaker')}")
    done = run_tls(bench, bootstrap, "enc.tls", 25, settings)
    check(done.returncode == 0, done.stderr)
    check(json.loads(done.stdout)["records"] > 500, done.stdout)
    check("CIPHERLANE" not in done.stderr, done.stderr)
    check(bench.issued("speaker") >= 4, bench.issued("speaker"))
    settings = bench.settings("listener", f"cipherlane.identity.token.file={bench.token('listener')}")
    done = run_tls(bench, bootstrap, "enc.ids", 2, settings, "cipherlane.tls.peer.ids=spiffe://dev.cipherlane/brokers/*, spiffe://dev.cipherlane/oper*")
    check(done.returncode == 0, done.stderr)
    settings = bench.settings("picky", f"cipherlane.identity.token.file={bench.token('picky')}")
    done = run_tls(bench, bootstrap, "enc.ids", 2, settings, "cipherlane.tls.peer.ids=spiffe://dev.cipherlane/brokers/**")
    check(done.returncode == 1 and "names none of cipherlane.tls.peer.ids" in done.stderr, (done.returncode, done.stderr))
    done = run_tls(bench, bootstrap, "enc.ids", 2, settings, "cipherlane.tls.peer.ids=spiffe://dev.cipherlane/**", "security.protocol=plaintext")
    check(done.returncode == 1 and "tls.peer.ids needs" in done.stderr, done.stderr)
    done = run_tls(bench, bootstrap, "enc.ids", 2, settings, "cipherlane.tls.peer.ids=spiffe://dev.cipherlane/**", "ssl.ca.location=/etc/ssl/certs")
    check(done.returncode == 1 and "neither a CA nor" in done.stderr, done.stderr)
    wrong = bench.broker("elsewhere.example", ["enc.tls:1"])
    settings = bench.settings("lost", f"cipherlane.identity.token.file={bench.token('lost')}")
    done = run_tls(bench, wrong, "enc.tls", 2, settings)
    check(done.returncode == 1 and "hostname mismatch" in done.stderr, done.stderr)
    done = run_tls(bench, wrong, "enc.tls", 2, settings, "cipherlane.identity.token.file=/nowhere", "ssl.endpoint.identification.algorithm=none")
    check(done.returncode == 1 and "identity.token.file" in done.stderr, done.stderr)


def main() -> int:
    build, results = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    return run_cases("identity_e2e", results, sys.argv[3:], [nothing_to_prove_with, first_by_token, one_after_another, first_by_certificate, kafka],
                     lambda folder: Bench(build, folder))


if __name__ == "__main__":
    sys.exit(main())
