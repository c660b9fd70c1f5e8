"""`python -m peerproof`: becomes the binary."""

import os
import sys

from peerproof import find_binary

if __name__ == "__main__":
    binary = find_binary()
    os.execv(binary, [binary, *sys.argv[1:]])
