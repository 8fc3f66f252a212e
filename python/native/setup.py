"""Builds the extension over libcipherlane's core, whose sources a source distribution carries in core/.

With ``OPENSSL_DIR`` in the environment the OpenSSL there is linked in, as wheels have it, and hidden from whatever else
the process loads; else the system's is used.
"""

import os
import shutil
from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
CORE = HERE / "core"
IN_REPOSITORY = HERE.parents[1] / "c"
NEEDED = ("src/cipher.c", "src/cipher.h", "src/envelope.h", "src/bytes.h", "include/cipherlane/cipherlane.h")

if IN_REPOSITORY.is_dir():
    for name in NEEDED:
        copied = CORE / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(IN_REPOSITORY / name, copied)

INSIDE = os.environ.get("OPENSSL_DIR")
OPENSSL = (
    {"extra_objects": [f"{INSIDE}/lib/libcrypto.a"], "extra_link_args": ["-Wl,--exclude-libs,ALL", "-Wl,--strip-all"]}
    if INSIDE
    else {"libraries": ["crypto"]}
)

setup(
    ext_modules=[
        Extension(
            "cipherlane_native._core",
            [
                *(f"src/cipherlane_native/{name}.c" for name in ("_core", "aead", "session", "opener")),
                "core/src/cipher.c",
            ],
            depends=["src/cipherlane_native/core.h"],
            include_dirs=[*([f"{INSIDE}/include"] if INSIDE else []), "core/src", "core/include"],
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra", "-D_GNU_SOURCE"],
            py_limited_api=True,
            **OPENSSL,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
