"""The librdkafka drop-in and the preload library against a real broker and a real key service.

Usage: kafka_e2e.py BUILD_FOLDER RESULTS_FOLDER [CASE …]. Starts both servers, runs the C cases, then unchanged programs under the
preload library, and scans the broker's log segments for canaries: there must be none. Writes JUnit XML.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import preload_actions
from e2e import ROOT, Bench, C, check, run_cases

CANARY = b"canary-"
TOPICS = [f"enc.{name}:1" for name in "forms old none events dup refused large long injected kcat python cpp example java performance rdexample go".split()]
TOPICS += [f"enc.{name}:1" for name in "act.skip act.letters act.letters.dead-letter act.mark bound zstd".split()]
TOPICS += [f"enc.{name}:1" for name in "unread unread.dead-letter".split()]
# The C cases run on two versions of librdkafka; the second has topics of its own.
TOPICS += [topic.replace("enc.", "enc.new.") for topic in TOPICS]
TOPICS += ["clear.a:1", "clear.new.a:1", "forbid.a:1"]


def drop_in(bench: Bench) -> None:
    """The C cases write their own results."""
    for program in ("kafka_cases", "action_cases"):
        environment = {**bench.environment, "CL_SUITE": f"asan-{program}"}
        done = subprocess.run([str(bench.build / "asan/tests" / program)], env=environment, timeout=240, check=False)
        check(done.returncode == 0, f"{program} ended with {done.returncode}")


def newest_librdkafka(bench: Bench) -> None:
    """The same cases, and the same library, on the newest librdkafka: the one in the confluent-kafka wheel."""
    libraries = next((C / ".venv/lib").glob("python3*/site-packages/confluent_kafka.libs"))
    newest = bench.folder / "newest"
    newest.mkdir()
    for library in libraries.iterdir():
        (newest / library.name).symlink_to(library)
    (newest / "librdkafka.so.1").symlink_to(next(libraries.glob("librdkafka-*.so.1")))
    environment = {**bench.environment, "LD_LIBRARY_PATH": str(newest), "CL_PREFIX": "new."}
    for program in ("kafka_cases", "action_cases"):
        environment["CL_SUITE"] = f"newest-{program}"
        done = subprocess.run([str(bench.build / "asan/tests" / program)], env=environment, capture_output=True, timeout=240, check=False)
        check(done.returncode == 0, (program, done.returncode, done.stdout[-500:], done.stderr[-2000:]))
        check(b"on librdkafka 2.16" in done.stdout, done.stdout)


def kcat(bench: Bench) -> None:
    lines = [f"canary-kcat {number}".encode() for number in range(500)]
    done = bench.preloaded("producer", "kcat", "-b", bench.bootstrap, "-P", "-t", "enc.kcat", "-p", "0", stdin=b"\n".join(lines))
    check(done.returncode == 0, done.stderr)
    check(bench.raw_values("enc.kcat", 1) == [str(len(lines[0]) + 60).encode()], "not an envelope on the broker")
    read = bench.preloaded("consumer", "kcat", "-b", bench.bootstrap, "-C", "-t", "enc.kcat", "-p", "0", "-o", "beginning", "-e", "-q")
    check(read.returncode == 0 and read.stdout.split(b"\n")[:-1] == lines, (read.stderr, read.stdout[:300]))


def kcat_refused(bench: Bench) -> None:
    done = bench.preloaded("stranger", "kcat", "-b", bench.bootstrap, "-P", "-t", "enc.refused", "-p", "0", stdin=b"canary-refused\n")
    check(done.returncode != 0 and b"not-authorized" in done.stderr, (done.returncode, done.stderr))


def no_settings(bench: Bench) -> None:
    done = bench.preloaded(None, "kcat", "-b", bench.bootstrap, "-P", "-t", "enc.refused", "-p", "0", stdin=b"canary-none\n")
    check(done.returncode != 0 and b"CIPHERLANE_CONFIG" in done.stderr, (done.returncode, done.stderr))


PYTHON_PRODUCER = """
import sys
from confluent_kafka import Producer
reports = []
producer = Producer({"bootstrap.servers": sys.argv[1]})
for number in range(500):
    producer.produce("enc.python", value=f"canary-python {number}", key=str(number), headers={"n": str(number)}, partition=0,
                     on_delivery=lambda error, message: reports.append((error, message.value())))
    producer.poll(0)
producer.flush(30)
assert reports == [(None, f"canary-python {number}".encode()) for number in range(500)], reports[:3]
"""
PYTHON_CONSUMER = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g"})
consumer.assign([TopicPartition("enc.python", 0, 0)])
read = [consumer.poll(30) for _ in range(250)]
while len(read) < 500:
    read += consumer.consume(500 - len(read), 30)
assert [m.error() for m in read] == [None] * 500, [str(m.error()) for m in read[:3]]
assert [m.value() for m in read] == [f"canary-python {n}".encode() for n in range(500)], read[0].value()
assert [m.headers() for m in read] == [[("n", str(n).encode())] for n in range(500)]
consumer.close()
"""


def python_wheel(bench: Bench) -> None:
    """The wheel brings its own librdkafka under another name, loaded privately."""
    python = str(C / ".venv/bin/python")
    done = bench.preloaded("producer", python, "-c", PYTHON_PRODUCER, bench.bootstrap)
    check(done.returncode == 0, done.stderr.decode())
    done = bench.preloaded("consumer", python, "-c", PYTHON_CONSUMER, bench.bootstrap)
    check(done.returncode == 0, done.stderr.decode())


def rdkafka_performance(bench: Bench) -> None:
    """librdkafka's own load program, unchanged, in both directions; kcat compares each value."""
    program = str(bench.build / "librdkafka/rdkafka_performance")
    common = ["-t", "enc.performance", "-p", "0", "-b", bench.bootstrap, "-c", "500", "-q"]
    done = bench.preloaded("producer", program, "-P", "-s", "100", "-m", "canary-performance ", *common)
    check(done.returncode == 0, (done.stdout, done.stderr))
    check(set(bench.raw_values("enc.performance", 500)) == {b"160"}, "not envelopes on the broker")
    value = (b"canary-performance " * 6)[:100]
    read = bench.preloaded("consumer", "kcat", "-b", bench.bootstrap, "-C", "-t", "enc.performance", "-p", "0", "-o", "beginning", "-e", "-q")
    check(read.stdout.split(b"\n")[:-1] == [value] * 500, (read.stderr, read.stdout[:300]))
    done = bench.preloaded("consumer", program, "-C", "-o", "beginning", *common)
    check(done.returncode == 0 and b"500 messages" in done.stdout and b"rror" not in done.stdout + done.stderr, (done.stdout, done.stderr))


def rdkafka_example(bench: Bench) -> None:
    """librdkafka's own example, unchanged: lines in, the same lines out."""
    program = str(bench.build / "librdkafka/rdkafka_example")
    common = ["-t", "enc.rdexample", "-p", "0", "-b", bench.bootstrap]
    lines = [b"canary-rdexample %d" % number for number in range(200)]
    done = bench.preloaded("producer", program, "-P", *common, stdin=b"\n".join(lines) + b"\n")
    check(done.returncode == 0, (done.stdout, done.stderr))
    read = bench.preloaded("consumer", program, "-C", "-A", "-q", "-e", "-o", "beginning", *common)
    printed = [line for line in read.stdout.split(b"\n") if line.startswith(b"canary")]
    check(read.returncode == 0 and printed == lines, (read.stderr, read.stdout[:300]))


def go_program(bench: Bench) -> None:
    """An unchanged Go program on confluent-kafka-go, linked with librdkafka dynamically."""
    done = bench.preloaded("both", str(bench.build / "go-client"), bench.bootstrap, "enc.go", "300")
    check(done.returncode == 0, (done.stdout, done.stderr))
    check(bench.raw_values("enc.go", 1) == [b"71"], "not an envelope on the broker")


def static_program(bench: Bench) -> None:
    """A program with librdkafka inside is noticed: here one that exports it."""
    program = bench.folder / "static"
    source = "int rd_kafka_produce(void);int rd_kafka_produce(void){return 0;} int main(void){return rd_kafka_produce();}"
    subprocess.run(["gcc", "-x", "c", "-", "-rdynamic", "-o", str(program)], input=source.encode(), check=True)
    done = bench.preloaded("producer", str(program))
    check(done.returncode != 0 and b"cannot be preloaded" in done.stderr, (done.returncode, done.stderr))


def examples(bench: Bench) -> None:
    """The example programs, compared with their input; a stranger sends and reads nothing."""
    folder = bench.build / "asan/tests"
    lines = b"".join(b"canary-example %d\n" % number for number in range(2000))

    def example(name: str, role: str, *more: str, stdin: bytes = b"") -> subprocess.CompletedProcess:
        command = [str(folder / f"example_{name}"), bench.bootstrap, "enc.example", str(bench.settings(role)), *more]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=90, env=bench.environment, check=False)

    done = example("producer", "producer", stdin=lines)
    check(done.returncode == 0, done.stderr)
    done = example("consumer", "consumer", "2000")
    check(done.returncode == 0 and done.stdout == lines, (done.stderr, done.stdout[:200]))
    done = example("producer", "stranger", stdin=b"canary-stranger\n")
    check(done.returncode == 1 and b"not-authorized" in done.stderr, done.stderr)
    done = example("consumer", "stranger", "1")
    check(done.returncode == 1 and b"not-authorized" in done.stderr and done.stdout == b"", (done.stdout, done.stderr))


CPP = r"""
#include <librdkafka/rdkafkacpp.h>
#include <cstdio>
#include <string>
int main(int, char **argv) {
    std::string why;
    RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
    conf->set("bootstrap.servers", argv[1], why);
    conf->set("group.id", "cpp", why);
    RdKafka::Producer *producer = RdKafka::Producer::create(conf, why);
    if (!producer) return std::fprintf(stderr, "%s\n", why.c_str()), 1;
    for (int i = 0; i < 100; i++) {
        std::string value = "canary-cpp " + std::to_string(i);
        if (producer->produce("enc.cpp", 0, RdKafka::Producer::RK_MSG_COPY, &value[0], value.size(), nullptr, 0, 0, nullptr))
            return std::fprintf(stderr, "not sent\n"), 2;
    }
    if (producer->flush(30000)) return 3;
    delete producer;
    RdKafka::KafkaConsumer *consumer = RdKafka::KafkaConsumer::create(conf, why);
    if (!consumer) return std::fprintf(stderr, "%s\n", why.c_str()), 4;
    RdKafka::TopicPartition *start = RdKafka::TopicPartition::create("enc.cpp", 0, 0);
    consumer->assign({start});
    for (int i = 0; i < 100; i++) {
        RdKafka::Message *message = consumer->consume(30000);
        std::string value(static_cast<const char *>(message->payload()), message->len());
        if (message->err() || value != "canary-cpp " + std::to_string(i)) return std::fprintf(stderr, "%s\n", value.c_str()), 5;
        delete message;
    }
    consumer->close();
    delete start;
    delete consumer;
    delete conf;
}
"""


def cpp_program(bench: Bench) -> None:
    """An unchanged C++ program on librdkafka++."""
    program = bench.folder / "cpp"
    subprocess.run(["g++", "-x", "c++", "-", "-o", str(program), "-lrdkafka++", "-lrdkafka"], input=CPP.encode(), check=True)
    done = bench.preloaded("both", str(program), bench.bootstrap)
    check(done.returncode == 0, (done.returncode, done.stderr.decode()))


PYTHON_SDK = """
import json, sys
from confluent_kafka import TopicPartition
from cipherlane.confluent import Consumer
settings = dict(line.split("=", 1) for line in open(sys.argv[2]).read().split())
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "sdk", **settings})
consumer.assign([TopicPartition("enc.kcat", 0, 0)])
values = []
while len(values) < 500:
    message = consumer.poll(30)
    assert message is not None and message.error() is None, message
    values.append(message.value())
assert values == [f"canary-kcat {n}".encode() for n in range(500)], values[:3]
consumer.close()
"""


def python_sdk_reads(bench: Bench) -> None:
    """What C encrypted, the Python SDK decrypts."""
    environment = {**bench.environment, "PYTHONPATH": str(ROOT / "python/src")}
    command = [str(C / ".venv/bin/python"), "-c", PYTHON_SDK, bench.bootstrap, str(bench.settings("consumer"))]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=90, check=False)
    check(done.returncode == 0, done.stderr.decode())


def java_command(bench: Bench, role: str, program: str, *more: str) -> list[str]:
    """A tool of the Kafka distribution with Cipherlane's interceptor."""
    jars = [*(ROOT / "java").glob("core/target/cipherlane-core-*T.jar"), *(ROOT / "java").glob("kafka/target/cipherlane-kafka-*T.jar")]
    gson = sorted((Path.home() / ".m2/repository/com/google/code/gson/gson").glob("*/gson-*.jar"))
    check(len(jars) == 2 and bool(gson), "make -C java build")
    side = "producer" if program.endswith("Producer") else "consumer"
    interceptor = "EncryptingProducerInterceptor" if side == "producer" else "DecryptingConsumerInterceptor"
    settings = bench.folder / f"java-{side}.properties"
    settings.write_text(bench.settings(role).read_text() + f"interceptor.classes=dev.cipherlane.kafka.{interceptor}\n")
    path = ":".join([*map(str, jars), str(gson[-1]), str(ROOT / "java/broker/target/lib/*")])
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, f"org.apache.kafka.tools.{program}",
            "--bootstrap-server", bench.bootstrap, "--command-config", str(settings), *more]


def java_sdk(bench: Bench) -> None:
    """Java writes and C reads; C wrote and Java reads."""
    lines = [b"canary-java %d" % number for number in range(300)]
    done = subprocess.run(java_command(bench, "producer", "ConsoleProducer", "--topic", "enc.java"), input=b"\n".join(lines) + b"\n",
                          capture_output=True, timeout=90, env=bench.environment, check=False)
    check(done.returncode == 0, done.stderr.decode())
    read = bench.preloaded("consumer", "kcat", "-b", bench.bootstrap, "-C", "-t", "enc.java", "-p", "0", "-o", "beginning", "-e", "-q")
    check(read.returncode == 0 and read.stdout.split(b"\n")[:-1] == lines, (read.stderr, read.stdout[:300]))
    done = subprocess.run(java_command(bench, "consumer", "consumer.ConsoleConsumer", "--topic", "enc.kcat", "--from-beginning",
                                       "--max-messages", "500", "--timeout-ms", "60000",
                                       "--key-deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"),
                          capture_output=True, timeout=90, env=bench.environment, check=False)
    check(done.stdout.split(b"\n")[:-1] == [b"canary-kcat %d" % number for number in range(500)], (done.stderr, done.stdout[:300]))


def disk(bench: Bench) -> None:
    """No canary in any log segment, and envelopes were there to be found."""
    segments = list(bench.log_dir.rglob("*.log"))
    stored = b"".join(segment.read_bytes() for segment in segments)
    check(b"\xc1\x9e\x01" in stored, "no envelope on the disk")
    check(b"in the clear" in stored, "the scan does not find what is there in the clear")
    check(CANARY not in stored, "a canary is on the disk")


CASES: list[Callable[[Bench], None]] = [
    drop_in, newest_librdkafka, kcat, kcat_refused, no_settings, python_wheel, *preload_actions.CASES, cpp_program, rdkafka_performance, rdkafka_example,
    go_program, python_sdk_reads, java_sdk, examples, static_program, disk,
]


def main() -> int:
    build, results = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    os.environ["CL_RESULTS"] = str(results.resolve())
    return run_cases("kafka_e2e", results, sys.argv[3:], CASES, lambda folder: Bench(build, folder, TOPICS))


if __name__ == "__main__":
    sys.exit(main())
