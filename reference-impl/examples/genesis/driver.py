#!/usr/bin/env python3
"""A policy driver that makes a tool and calls it: WRITE_FILE, COMPILE, LOAD, the tool, and the end.

    driver.py PAYLOAD

Which step is next stands in the inputs of the run: each patch counts it up.
"""

import base64
import json
import shutil
import sys
from pathlib import Path

LETTERS = "writtenbyadriver"
STEPS = (
    "AID.GENESIS.WRITE_FILE.v1",
    "AID.GENESIS.COMPILE.v1",
    "AID.GENESIS.LOAD.v1",
    "AID.GENESIS.SAMPLE.v1",
)


def sample():
    """Name and text of a source for the compiler that is there."""
    name, file = ("sample.c", "sample.c") if shutil.which("cc") else ("sample.rs", "sample.rs.txt")
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return name, text.replace("@NONCE@", LETTERS)


def block(payload):
    """The step that is next, as a block."""
    step = payload["inputs"].get("step", 0)
    if step == len(STEPS):
        return "<NOOP><END>"
    sid = next(entry["sid"] for entry in payload["menu"] if entry["aid"] == STEPS[step])
    patch = {"step": step + 1}
    if step == 0:
        name, text = sample()
        patch.update(path=name, content=text, name="made")
    coded = base64.b64encode(json.dumps(patch).encode()).decode()
    return f"<PICK><{sid}><INP64>{coded}</INP64><END>"


if __name__ == "__main__":
    with open(sys.argv[-1], encoding="utf-8") as file:
        print(block(json.load(file)))
