"""Finds the peerproof binary of this package. peerproof is a command line; it has no Python interface."""

import os
import sys
import sysconfig


def find_binary():
    """Path of the binary, as `pip install` placed it.

    Raises FileNotFoundError if the package was not installed by a tool that installs scripts.
    """
    folders = [sysconfig.get_path("scripts")]
    if sys.prefix == sys.base_prefix:
        folders.append(sysconfig.get_path("scripts", "posix_user"))
    # `pip install --target DIR` writes DIR/bin.
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for folder in folders:
        path = os.path.join(folder, "peerproof")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("no peerproof binary in " + ", ".join(folders))
