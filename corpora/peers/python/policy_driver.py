#!/usr/bin/env python3
"""An example policy driver: the provider side of the policy_driver boundary, in the standard library alone.

    policy_driver.py PAYLOAD         decides from the payload file, prints one block, exits

Rules, the first that applies:

1. `inputs.policy` is "stop": `<NOOP><END>`; "ask": `<ASK_SUP><END>`.
2. The entry: the first of the menu with the tag `http` if the inputs have a `url`, `shell` if they have a `cmd`, `file`
   if they have a `path`; else the first of the menu. From an empty menu nothing is picked: `<ASK_SUP><END>`.
3. `inputs.policy_patch`, an object, goes along as INP; `inputs.policy_patch64` as INP64.

A payload that is none is a question for the supervisor as well: `<ASK_SUP><END>`, and the reason on stderr.
"""

import base64
import os
import re
import sys

sys.dont_write_bytecode = True  # leave no file behind

import strict_json  # noqa: E402

STDOUT_BYTES_MAX = 65_536  # all that we print; inclusive
PAYLOAD_BYTES_MAX = 64 * 1024 * 1024  # our own bound on memory; payloads of 10 MB are required
SID = re.compile(r"SID[0-9]{4}")
TAG_OF_INPUT = (("url", "http"), ("cmd", "shell"), ("path", "file"))
NOOP = b"<NOOP><END>\n"
ASK_SUP = b"<ASK_SUP><END>\n"


class MalformedPayload(Exception):
    """Nothing is picked from such a payload."""


def member(holder, name, type_, where):
    """A member that is there and of this type; the contract lists all of them, so that none is guessed."""
    value = holder.get(name)
    if not isinstance(value, type_):
        raise MalformedPayload(f"{where}.{name} is absent or of another type")
    return value


def parse_payload(data):
    """Bytes → the payload, of which every documented field has its type and every SID is unique."""
    try:
        payload = strict_json.loads(data)
    except strict_json.MalformedJson as error:
        raise MalformedPayload(str(error)) from None
    if not isinstance(payload, dict):
        raise MalformedPayload("not an object")
    for name in ("goal_digest", "state_digest", "control_mode"):
        member(payload, name, str, "payload")
    member(payload, "inputs", dict, "payload")
    seen = set()
    for entry in member(payload, "menu", list, "payload"):
        if not isinstance(entry, dict):
            raise MalformedPayload("an entry of the menu is no object")
        sid = member(entry, "sid", str, "entry")
        if not SID.fullmatch(sid) or sid in seen:
            raise MalformedPayload("a sid is not SID and four digits, or is there twice")
        seen.add(sid)
        member(entry, "aid", str, "entry")
        member(entry, "name", str, "entry")
        if not all(isinstance(tag, str) for tag in member(entry, "tags", list, "entry")):
            raise MalformedPayload("a tag is no string")
    return payload


def choose(inputs, menu):
    """The entry to pick, or None. Nothing is taken from a text but whether it equals one of ours."""
    for name, tag in TAG_OF_INPUT:
        if name in inputs:
            for entry in menu:
                if tag in entry["tags"]:
                    return entry
    return menu[0] if menu else None


def patch_of(inputs):
    """The patch that the inputs ask for, as it stands between `<SIDdddd>` and `<END>`."""
    for name, encoded in (("policy_patch", False), ("policy_patch64", True)):
        patch = inputs.get(name)
        if isinstance(patch, dict):
            text = strict_json.dumps(patch).encode("utf-8")
            if encoded:
                return b"<INP64>" + base64.b64encode(text) + b"</INP64>"
            return b"<INP>" + text + b"</INP>"
    return b""


def decide(payload):
    """The payload → the whole of stdout."""
    inputs = payload["inputs"]
    if inputs.get("policy") == "stop":
        return NOOP
    if inputs.get("policy") == "ask":
        return ASK_SUP
    entry = choose(inputs, payload["menu"])
    if entry is None:
        return ASK_SUP
    block = b"<PICK><" + entry["sid"].encode("ascii") + b">" + patch_of(inputs) + b"<END>\n"
    return block if len(block) <= STDOUT_BYTES_MAX else ASK_SUP


def read_payload(path):
    try:
        with open(path, "rb") as file:
            data = file.read(PAYLOAD_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise MalformedPayload(f"cannot be read: {error}") from None
    if len(data) > PAYLOAD_BYTES_MAX:
        raise MalformedPayload("too large")
    return data


def main(arguments):
    if len(arguments) != 1:
        sys.stderr.write("usage: policy_driver.py PAYLOAD\n")
        return 2
    try:
        block = decide(parse_payload(read_payload(arguments[0])))
    except (MalformedPayload, MemoryError) as error:
        sys.stderr.write(f"policy_driver.py: payload: {error}\n")
        block = ASK_SUP
    while block:
        block = block[os.write(1, block) :]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
