"""The commands of ``python -m cipherlane``."""

from __future__ import annotations

import argparse
from typing import Sequence

from cipherlane.cli import doctor, inspect


def main(arguments: Sequence[str]) -> int:
    """Runs a command.

    Returns:
        exit code: 0 all is well, 1 something is not, 2 the command line is wrong
    """
    parser = argparse.ArgumentParser(prog="python -m cipherlane", description="Encrypted Kafka records: what is wrong?")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect.add_to(commands)
    doctor.add_to(commands)
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as wrong:  # argparse has said why
        return int(wrong.code or 0)
    return int(chosen.run(chosen))
