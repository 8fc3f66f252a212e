"""``python -m cipherlane``: looks at an envelope, and at what keeps a client from working."""

import sys

from cipherlane.cli import main

sys.exit(main(sys.argv[1:]))
