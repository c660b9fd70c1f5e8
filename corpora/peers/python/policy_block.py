"""Blocks, as a selector reads them: what a driver printed → the one block that it is, or why it is none."""

import base64
import binascii
import re

import strict_json

NESTING_MAX = 64  # of a patch; the object itself is level 1

# Greedy up to the last end of a patch: `</INP>` outside a string of the patch leaves text that is no JSON, and inside
# a string it ends nothing.
_PICK = re.compile(
    rb"<PICK><(?P<sid>SID[0-9]{4})>(?:<INP>(?P<plain>.*)</INP>|<INP64>(?P<encoded>[^<>]*)</INP64>)?<END>",
    re.DOTALL,
)
_WITHOUT_SID = {b"<ASK_SUP><END>": "ASK_SUP", b"<NOOP><END>": "NOOP"}
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")


class InvalidBlock(Exception):
    """The driver printed something else than one valid block."""


class Block:
    """A block: `kind`, the `sid` of a pick, and its patch, as the driver's own text and as a value."""

    def __init__(self, kind, sid=None, patch_text=None, patch=None):
        self.kind = kind
        self.sid = sid
        self.patch_text = patch_text
        self.patch = patch


def parse_block(stdout):
    """All that a driver printed → its Block; raises InvalidBlock."""
    text = bytes(stdout).strip(b" \t\r\n")
    if not text:
        raise InvalidBlock("the driver printed nothing")
    if text in _WITHOUT_SID:
        return Block(_WITHOUT_SID[text])
    match = _PICK.fullmatch(text)
    if match is None:
        raise InvalidBlock("not one block of the five forms")
    sid = match.group("sid").decode("ascii")
    patch_bytes = match.group("plain")
    if match.group("encoded") is not None:
        patch_bytes = decode_base64(match.group("encoded"))
    if patch_bytes is None:
        return Block("PICK", sid)
    return Block("PICK", sid, *parse_patch(patch_bytes))


def decode_base64(text):
    """Canonical, padded base64 of the standard alphabet; no other spelling."""
    if not _BASE64.fullmatch(text):
        raise InvalidBlock("INP64 is not base64 of the standard alphabet")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InvalidBlock(f"INP64 is not base64: {error}") from None
    if base64.b64encode(data) != text:
        raise InvalidBlock("INP64 is not canonical base64")
    return data


def parse_patch(data):
    """The bytes of a patch → its text, in the driver's own spelling, and its value, an object."""
    try:
        patch = strict_json.loads(data)
    except strict_json.MalformedJson as error:
        raise InvalidBlock(f"the patch is not JSON: {error}") from None
    if not isinstance(patch, dict):
        raise InvalidBlock("the patch is no object")
    if nesting_of(patch) > NESTING_MAX:
        raise InvalidBlock("the patch is nested too deeply")
    return data.decode("utf-8").strip(" \t\r\n"), patch


def nesting_of(value):
    """How many levels of arrays and objects a value has."""
    depth, level = 0, [value]
    while True:
        level = [item for item in level if isinstance(item, (dict, list))]
        if not level:
            return depth
        depth += 1
        level = [item for holder in level for item in (holder.values() if isinstance(holder, dict) else holder)]
