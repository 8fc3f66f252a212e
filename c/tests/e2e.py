"""What the cases with real servers share: the servers as child processes, how to run a program beside them, and the results as JUnit XML."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

C = Path(__file__).resolve().parent.parent
ROOT = C.parent


class Server:
    """A child process that says where it is in one line of JSON and ends with its standard input."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{command[0]} ended with {self.process.wait()}")
        self.says: dict = json.loads(line)

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bench:
    """Both servers, and how to run a program beside them."""

    def __init__(self, build: Path, folder: Path, topics: list[str]) -> None:
        self.build, self.folder = build, folder
        self.unreadable = False  # whether fill_unreadable has run
        pki = folder / "pki"
        self.keys = Server(
            str(ROOT / "keyservice/build/bin/cipherlane-keyservice"), "dev", "--dir", str(pki), "--json",
            "--until-stdin-closes", "--policy", str(C / "tests/policy.yaml"), "--principal", "both",
        )
        self.broker = Server(
            "java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar",
            str(ROOT / "java/broker/target/cipherlane-broker.jar"), "--until-stdin-closes",
            *[part for topic in topics for part in ("--topics", topic)],
        )
        self.bootstrap = self.broker.says["bootstrap"]
        self.log_dir = Path(self.broker.says["log_dir"])
        self.environment = {
            **os.environ, "CL_BOOTSTRAP": self.bootstrap, "CL_URL": self.keys.says["url"], "CL_CA": self.keys.says["ca"],
            "CL_PKI": str(pki), "TMPDIR": str(folder),
        }

    def stop(self) -> None:
        self.broker.stop()
        self.keys.stop()

    def settings(self, role: str, *more: str) -> Path:
        """A settings file for the preload library, with more lines."""
        principal = self.keys.says["principals"][role]
        path = self.folder / f"{role}.properties"
        path.write_text(
            f"cipherlane.keyservice.urls={self.keys.says['url']}\ncipherlane.keyservice.tls.ca={self.keys.says['ca']}\n"
            f"cipherlane.keyservice.tls.certificate={principal['certificate']}\n"
            f"cipherlane.keyservice.tls.key={principal['key']}\n"
            # a machine that builds much else is late, not wrong
            "cipherlane.keyservice.connect.timeout.ms=30000\ncipherlane.keyservice.request.timeout.ms=30000\ncipherlane.keys.deadline.ms=60000\n"
            + "".join(f"{line}\n" for line in more)
        )
        return path

    def preloaded(self, role: str | None, *command: str, stdin: bytes = b"", timeout: float = 90,
                  settings: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        """Runs an unchanged program with the preload library and more settings; without a role without CIPHERLANE_CONFIG."""
        environment = {**self.environment, "LD_PRELOAD": str(self.build / "dev/libcipherlane-rdkafka.so")}
        if role is not None:
            environment["CIPHERLANE_CONFIG"] = str(self.settings(role, *settings))
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, timeout=timeout, check=False)

    def raw_values(self, topic: str, count: int) -> list[bytes]:
        """What the broker has, read without us."""
        done = subprocess.run(
            ["kcat", "-b", self.bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-e", "-q", "-f", "%S\n"],
            capture_output=True, timeout=60, check=True, env=self.environment,
        )
        return done.stdout.split()


def check(condition: bool, what: object) -> None:
    """Fails the running case."""
    if not condition:
        raise AssertionError(what)


def run(case: Callable, bench: object, suite: ElementTree.Element) -> bool:
    name = suite.get("name", "")
    element = ElementTree.SubElement(suite, "testcase", classname=f"c.{name}", name=case.__name__)
    started = time.monotonic()
    try:
        case(bench)
        failure = None
    except Exception:  # noqa: BLE001 - a failed case is a result
        failure = traceback.format_exc()
        ElementTree.SubElement(element, "failure", message=failure[-800:])
    element.set("time", f"{time.monotonic() - started:.3f}")
    print(f"{name} {case.__name__}: {'passed' if failure is None else 'FAILED ' + failure}", flush=True)
    return failure is None


def run_cases(name: str, results: Path, chosen: list[str], cases: list[Callable], begin: Callable) -> int:
    """Runs the chosen cases (all, if none is) beside what `begin` starts in a new folder, and writes TEST-<name>.xml; the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="cipherlane-c-"))
    suite = ElementTree.Element("testsuite", name=name)
    try:
        bench = begin(folder)
        try:
            passed = [run(case, bench, suite) for case in cases if not chosen or case.__name__ in chosen]
        finally:
            bench.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ElementTree.ElementTree(suite).write(results.resolve() / f"TEST-{name}.xml", encoding="utf-8", xml_declaration=True)
    print(f"{name}: {sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1
