"""Builds the extensions over libcipherlane's sources, which a source distribution carries in core/.

With ``OPENSSL_DIR`` in the environment the OpenSSL there is linked in, as wheels have it, and hidden from whatever else
the process loads; else the system's is used. TLS to brokers is for Linux, and needs librdkafka's
header, not its library.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
CORE = HERE / "core"
IN_REPOSITORY = HERE.parents[1] / "c"

CIPHER = ("src/cipher.c",)
TRANSPORT = (
    *(f"rdkafka/{name}.c" for name in ("pump", "stream", "tls")),
    *(f"src/{name}.c" for name in ("cipher", "certificate", "envelope", "error", "pem", "topics")),
)
HEADERS = (
    "include/cipherlane/cipherlane.h",
    *(f"rdkafka/{name}.h" for name in ("api", "frames", "pump", "stream", "tls")),
    *(
        f"src/{name}.h"
        for name in (
            "answers", "bytes", "certificate", "cipher", "clock", "config", "envelope", "error", "identity", "lease",
            "pem", "secret", "thread", "topics",
        )
    ),
)  # fmt: skip

if IN_REPOSITORY.is_dir():
    for name in {*CIPHER, *TRANSPORT, *HEADERS}:
        copied = CORE / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(IN_REPOSITORY / name, copied)

INSIDE = os.environ.get("OPENSSL_DIR")


def extension(name: str, own: tuple[str, ...], core: tuple[str, ...], openssl: tuple[str, ...]) -> Extension:
    """One shared object; ``openssl`` are that project's libraries in it, in the order in which they need each other."""
    linked = (
        {
            "extra_objects": [f"{INSIDE}/lib/lib{library}.a" for library in openssl],
            "extra_link_args": ["-Wl,--exclude-libs,ALL", "-Wl,--strip-all"],
        }
        if INSIDE
        else {"libraries": list(openssl)}
    )
    return Extension(
        f"cipherlane_native.{name}",
        [*(f"src/cipherlane_native/{file}.c" for file in own), *(f"core/{file}" for file in core)],
        depends=[f"src/cipherlane_native/{file}.h" for file in ("core", "given", "loaded")],
        include_dirs=[*([f"{INSIDE}/include"] if INSIDE else []), "core/src", "core/rdkafka", "core/include"],
        extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra", "-D_GNU_SOURCE"],
        py_limited_api=True,
        **linked,
    )


modules = [extension("_core", ("_core", "aead", "session", "opener"), CIPHER, ("crypto",))]
if sys.platform == "linux":
    modules.append(extension("_transport", ("_transport", "given", "loaded"), TRANSPORT, ("ssl", "crypto")))

setup(ext_modules=modules, options={"bdist_wheel": {"py_limited_api": "cp311"}})
