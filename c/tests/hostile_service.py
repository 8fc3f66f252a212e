"""A key service over mutual TLS that does what it is told, also what no key service should.

Usage: hostile_service.py CERTIFICATE KEY CA. Prints {"port": N}; then takes one JSON command a line and answers each
with one line. {"topic": T, "do": {...}} sets what happens to requests for a topic (merged over good behaviour; {} heals it);
{"count": T} tells how many requests there were for it; {"last": T} gives the last request, {"peer": T} the common name in its client's certificate. Ends with standard input.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCK = threading.Lock()
BEHAVIOUR: dict[str, dict] = {}
COUNTS: dict[str, int] = {}
LAST: dict[str, dict] = {}
KEYS: dict[str, bytes] = {}
PEERS: dict[str, str] = {}


def kid_of(key: bytes) -> str:
    """HKDF-SHA256 with an empty salt, 16 bytes."""
    pseudo_random = hmac.new(b"\0" * 32, key, hashlib.sha256).digest()
    return hmac.new(pseudo_random, b"cipherlane v1 key id\x01", hashlib.sha256).hexdigest()[:32]


def key_for(topic: str, generation: int) -> tuple[str, bytes]:
    key = hashlib.sha256(f"test key of {topic} {generation}".encode()).digest()
    KEYS[kid_of(key)] = key
    return kid_of(key), key


def lease(do: dict) -> dict:
    return {"refresh_in": do.get("refresh_in", 150), "expires_in": do.get("expires_in", 300)}


def encryption_answer(topic: str, do: dict) -> dict:
    mode = do.get("mode", "encrypt")
    if mode != "encrypt":
        return {"mode": mode, **lease(do)}
    kid, key = key_for(topic, do.get("generation", 0))
    if "key_bytes" in do:
        key = b"\x55" * do["key_bytes"]
    return {"mode": mode, "scope": do.get("scope", topic), "kid": kid, "key": base64.b64encode(key).decode(), **lease(do)}


def key_answer(kid: str, topic: str, do: dict) -> dict:
    if "kid_error" in do or kid not in KEYS:
        return {"kid": kid, "error": {"code": do.get("kid_error", "key-unknown")}}
    key = b"\x55" * do["key_bytes"] if "key_bytes" in do else KEYS[kid]
    return {"kid": kid, "scope": do.get("scope", topic), "key": base64.b64encode(key).decode(), **lease(do)}


def decryption_answer(topic: str, kids: list[str], do: dict) -> dict:
    keys = [key_answer(kid, topic, do) for kid in kids]
    return {"plaintext": do.get("plaintext", "reject"), **lease(do), "keys": keys}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Nothing: the command channel tells what was asked."""

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        topic = request.get("topic", self.path)  # requests for a certificate go by their path
        with LOCK:
            COUNTS[topic] = COUNTS.get(topic, 0) + 1
            LAST[topic] = request
            PEERS[topic] = next(value for part in self.connection.getpeercert()["subject"] for name, value in part if name == "commonName")
            do = dict(BEHAVIOUR.get(topic, {}))
        time.sleep(do.get("delay", 0))
        if do.get("drop"):
            self.close_connection = True
            self.connection.close()
            return
        with LOCK:
            answer = encryption_answer(topic, do) if self.path == "/v1/encryption-key" else decryption_answer(topic, request["kids"], do)
        text = do["body"] * do.get("times", 1) if "body" in do else json.dumps(answer)
        self.send_response(do.get("status", 200))
        self.send_header("Content-Type", do.get("type", "application/json"))
        if "location" in do:
            self.send_header("Location", do["location"])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


class Server(ThreadingHTTPServer):
    """Clients that hang up in the middle are what these tests are about: no traceback for them."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing to say."""


def obey(command: dict) -> object:
    with LOCK:
        if "count" in command:
            return COUNTS.get(command["count"], 0)
        if "last" in command:
            return LAST.get(command["last"])
        if "peer" in command:
            return PEERS.get(command["peer"])
        BEHAVIOUR[command["topic"]] = command["do"]
        return True


def main() -> None:
    certificate, key, ca = sys.argv[1:4]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_port}), flush=True)
    for line in sys.stdin:
        print(json.dumps(obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
