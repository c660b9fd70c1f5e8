"""What stands before the methods of a JSON-RPC server where it is asked for: signatures, a rate limit, compression.

A key is a secret: it comes in the environment variable JSON_RPC_AUTH_KEY, which other users cannot read.
"""

import argparse
import base64
import binascii
import collections
import hashlib
import hmac
import math
import os
import time
import zlib

from canonical_json import canonical
from json_rpc_methods import MESSAGE_BYTES_MAX
from json_rpc_replies import INVALID_REQUEST, RATE_LIMITED, UNAUTHORIZED, failure
from strict_json import INTEGER_EXACT_MAX

SIGNED = b"JSONRPC-HMAC-SHA256-V1\n"
SKEW_S = 300
NONCE_CHARS_MAX = 64
NONCE_KEPT_S = 600
GZIP = 16 + zlib.MAX_WBITS
INFLATE_BYTES = 65_536


class Unsignable(ValueError):
    """The message has no canonical text."""


class Corrupt(ValueError):
    """This is no compressed data."""


class TooLarge(ValueError):
    """There is no room for what comes out of this."""


def options(arguments=None, **others):
    """Reads the command line of a server; `others` are positional arguments and their types."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, kind in others.items():
        parser.add_argument(name, type=kind)
    parser.add_argument("--auth", action="store_true", help="messages are signed with JSON_RPC_AUTH_KEY")
    parser.add_argument("--auth-key-id", help="what messages call that key, where they name it")
    parser.add_argument("--rate-limit", type=rate, metavar="REQUESTS/SECONDS", help="requests in a sliding window")
    parser.add_argument("--gzip", action="store_true", help="messages may be compressed")
    parser.add_argument("--stream", action="store_true", help="tasks say on the way what they have, if asked to")
    found = parser.parse_args(arguments)
    if found.auth and not os.environ.get("JSON_RPC_AUTH_KEY"):
        parser.error("JSON_RPC_AUTH_KEY is not set")
    return found


def rate(text):
    requests, window_s = (int(part) for part in text.split("/"))
    if requests < 1 or window_s < 1:
        raise ValueError
    return requests, window_s


class Guards:
    """Decides which messages reach their methods. Not for several threads at once."""

    def __init__(self, options=None):
        self.signatures = None
        self.rate = None
        if options is not None and options.auth:
            self.signatures = Signatures(os.environ["JSON_RPC_AUTH_KEY"], options.auth_key_id)
        if options is not None and options.rate_limit:
            self.rate = RateLimit(*options.rate_limit)
        self.gzip = options is not None and options.gzip
        self.stream = options is not None and options.stream

    def refusal(self, message, id):
        """Returns what refuses a message of the right shape, or None."""
        if self.signatures:
            try:
                if not self.signatures.accept(message):
                    return failure(UNAUTHORIZED, id)
            except Unsignable as error:
                return failure(INVALID_REQUEST, id, str(error))
        if self.rate and (wait_s := self.rate.wait_s()):
            return failure(RATE_LIMITED, id, retry_after_ms=math.ceil(wait_s * 1_000))
        return None


class Signatures:
    """Tells messages that were signed with the key, are of now, and came once, from all others."""

    def __init__(self, key, key_id=None, now=time.time):
        self.key = key.encode()
        self.key_id = key_id
        self.now = now
        self.nonces = collections.OrderedDict()  # nonce: when it may be forgotten

    def accept(self, message):
        """Whether a message is authentic; one that is spends its nonce. Raises Unsignable."""
        text = signable_text(message)
        auth = message.get("auth")
        if not isinstance(auth, dict):
            return False
        signature, timestamp, nonce = auth.get("signature"), auth.get("timestamp"), auth.get("nonce")
        if not isinstance(signature, str) or not isinstance(nonce, str) or not 1 <= len(nonce) <= NONCE_CHARS_MAX:
            return False
        if not isinstance(timestamp, int) or isinstance(timestamp, bool):
            return False
        if auth.get("key_id", self.key_id) != self.key_id:
            return False
        expected = base64.b64encode(hmac.digest(self.key, SIGNED + text, hashlib.sha256))
        if not hmac.compare_digest(signature.encode(), expected):
            return False
        now = self.now()
        if abs(timestamp - math.floor(now)) > SKEW_S:
            return False
        while self.nonces and next(iter(self.nonces.values())) <= now:
            self.nonces.popitem(last=False)
        if nonce in self.nonces:
            return False
        self.nonces[nonce] = now + NONCE_KEPT_S
        return True


def signable_text(message):
    """Returns what the signature of a message is about."""
    auth = message.get("auth")
    if isinstance(auth, dict):
        message = {**message, "auth": {name: value for name, value in auth.items() if name != "signature"}}
    try:
        if has_large_integer(message):
            raise Unsignable("an integer that not every reader knows exactly")
        return canonical(message).encode("utf-8")
    except RecursionError:
        raise Unsignable("nested too deeply") from None


def has_large_integer(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return any(has_large_integer(item) for item in value)
    return isinstance(value, int) and abs(value) > INTEGER_EXACT_MAX


class RateLimit:
    """So many requests pass within any window; one that does not pass does not count."""

    def __init__(self, requests, window_s, now=time.monotonic):
        self.window_s = window_s
        self.now = now
        self.passed = collections.deque(maxlen=requests)  # when each of the last ones passed

    def wait_s(self):
        """Counts a request that passes and returns 0, or returns how long to wait."""
        now = self.now()
        if len(self.passed) == self.passed.maxlen and now - self.passed[0] < self.window_s:
            return self.passed[0] + self.window_s - now
        self.passed.append(now)
        return 0


def body_of_envelope(message):
    """Returns the message in `{"encoding":"gzip","body":"…"}`. Raises ValueError where that is none."""
    if message.get("jsonrpc") != "2.0" or message["encoding"] != "gzip" or not isinstance(message.get("body"), str):
        raise ValueError("no envelope of a compressed message")
    try:
        data = base64.b64decode(message["body"].encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise Corrupt("not base64") from None
    return inflate(data)


def inflate(data):
    """Returns what gzip compressed, one member or several. Raises Corrupt and TooLarge."""
    out = bytearray()
    while True:
        member = zlib.decompressobj(GZIP)
        try:
            while not member.eof:
                piece = member.decompress(data, INFLATE_BYTES)
                data = member.unconsumed_tail
                out += piece
                if len(out) > MESSAGE_BYTES_MAX:
                    raise TooLarge("inflated, it has too many bytes")
                if not data and len(piece) < INFLATE_BYTES:
                    break
        except zlib.error as error:
            raise Corrupt(str(error)) from None
        if not member.eof:
            raise Corrupt("it ends too early")
        data = member.unused_data
        if not data:
            return bytes(out)
