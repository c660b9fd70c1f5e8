#!/usr/bin/env python3
"""An example toolhost: the provider side of the toolhost boundary, in the standard library alone.

    toolhost.py --run PLUGIN AID     one request on stdin, one reply on stdout, then exit
    toolhost.py --serve PLUGIN       one request a line, one reply a line, until EOF

PLUGIN is accepted and ignored: the tools are the conformance roles at the end of this file. Read it from the bottom
of the page up to see a request become a reply, or from the top down for the rules one by one.

Environment: MACHINA_LEASE_ENFORCE=1 (serve mode asks for leases), MACHINA_HTTP_ALLOWED_HOSTS (see `AllowedHosts`).
"""

import os
import signal
import sys
import time
from collections import OrderedDict

sys.dont_write_bytecode = True  # a peer leaves no file behind

import strict_json  # noqa: E402

REQUEST_BYTES_MAX = 10 * 1024 * 1024  # stdin in run mode, a line without its LF in serve mode; inclusive
REPLY_BYTES_MAX = 1024 * 1024  # with its newline
READ_BYTES = 64 * 1024
IDEMPOTENCY_TTL_MS = 60_000
IDEMPOTENCY_ENTRIES_MAX = 1024
LEASE_TTL_MS_DEFAULT, LEASE_TTL_MS_MIN, LEASE_TTL_MS_MAX = 10_000, 1_000, 300_000
LEASES_MAX = 4096  # our own bound on memory: beyond it the oldest lease is forgotten
LEASE_TIER_MAX = 3
LEASE_ISSUE_AID = "_lease.issue"
IDEMPOTENT_HIT_BYTES = len(',"idempotent_hit":true')  # kept free in every reply, so that it fits again as a hit
QUOTED_CHARS_MAX = 200  # how much of a caller's text an error message repeats
HTTP_TIMEOUT_S = 10
HTTP_REDIRECTS_MAX = 5


class Refusal(Exception):
    """A host error: the request is answered `ok:false`, no tool runs, and nothing else changes."""

    def __init__(self, error, **members):
        super().__init__(error)
        self.reply = {"ok": False, "error": error, **members}


class ToolError(Exception):
    """A tool's own failure: the reply has status TOOL_ERROR."""


# ---------------------------------------------------------------------------------------------------------------
# Requests: wrong types are refused, never replaced by defaults; unknown members are ignored.


def is_integer(value):
    """True for an integer; JSON's true and false are not numbers, although Python thinks so."""
    return isinstance(value, int) and not isinstance(value, bool)


def parse_request(data):
    """Bytes → the request object. Anything that is not one strict JSON object is malformed."""
    try:
        request = strict_json.loads(data)
    except strict_json.MalformedJson as error:
        raise Refusal(f"malformed request: {error}") from None
    if not isinstance(request, dict):
        raise Refusal("malformed request: not a JSON object")
    return request


def string_member(request, name, default):
    """A member that is a string or absent. null is a wrong type here, as a number is."""
    value = request.get(name, default)
    if not isinstance(value, str):
        raise Refusal(f"malformed request: {name} must be a string")
    return value


def parse_input(request):
    """The tool's input. Absent `input_json` means {}; text that is no JSON object is never run as {}.

    `inputs` is the dispatcher's own member. Alone it means that the caller took us for something else: running the
    tool without the input it was given would be the worst answer, so it is refused.
    """
    if "inputs" in request and "input_json" not in request:
        raise Refusal("malformed request: this toolhost takes input_json (a string), not inputs")
    text = string_member(request, "input_json", "{}")
    try:
        value = strict_json.loads(text)
    except strict_json.MalformedJson as error:
        raise Refusal(f"malformed input_json: {error}") from None
    if not isinstance(value, dict):
        raise Refusal("malformed input_json: not a JSON object")
    return value


# ---------------------------------------------------------------------------------------------------------------
# DSState: eight slots, each empty or an Artifact. In memory: {slot number: Artifact}.


SLOT_BY_NAME = {str(number): number for number in range(8)}


def parse_artifact(value):
    """Returns the Artifact without unknown members; ValueError says what is wrong with it."""
    if not isinstance(value, dict):
        raise ValueError("an artifact must be an object")
    for name in ("type", "provenance", "content_json"):
        if not isinstance(value.get(name), str):
            raise ValueError(f"an artifact's {name} must be a string")
    size = value.get("size_bytes")
    if not is_integer(size) or size != len(value["content_json"].encode("utf-8")):
        raise ValueError("an artifact's size_bytes must be the byte length of its content_json")
    return {name: value[name] for name in ("type", "provenance", "content_json", "size_bytes")}


def parse_slot(value):
    """Returns a slot number; ValueError outside 0..7."""
    if not is_integer(value) or not 0 <= value <= 7:
        raise ValueError("a slot must be an integer from 0 to 7")
    return value


def state_after(slots, request):
    """The slots once the request's own `ds_state` is applied to `slots`, which stay as they are.

    A delta changes only what it names; a full state replaces everything; an absent member changes nothing.
    """
    if "ds_state" not in request:
        return slots
    try:
        state = request["ds_state"]
        if not isinstance(state, dict):
            raise ValueError("it must be an object")
        delta = state.get("delta", False)
        if not isinstance(delta, bool):
            raise ValueError("delta must be a boolean")
        named = state.get("slots", {})
        if not isinstance(named, dict):
            raise ValueError("slots must be an object")
        removed = state.get("removed_slots", [])
        if not isinstance(removed, list):
            raise ValueError("removed_slots must be an array")
        if removed and not delta:
            raise ValueError("removed_slots belongs to a delta")
        written = {}
        for name, artifact in named.items():
            if name not in SLOT_BY_NAME:
                raise ValueError("a slot must be named 0 to 7")
            written[SLOT_BY_NAME[name]] = parse_artifact(artifact)
        removed = {parse_slot(number) for number in removed}
        if removed & written.keys():
            raise ValueError("a slot is both set and removed")
    except ValueError as error:
        raise Refusal(f"malformed ds_state: {error}") from None
    if not delta:
        return written
    return {**{number: kept for number, kept in slots.items() if number not in removed}, **written}


def full_state(slots):
    """The `ds_state` of a run mode reply."""
    return {"slots": {str(number): artifact for number, artifact in slots.items()}}


def delta_state(before, after):
    """The `ds_state` of a serve mode reply: what the tool changed, on top of the request's own `ds_state`."""
    written = {number: artifact for number, artifact in after.items() if before.get(number) is not artifact}
    delta = {**full_state(written), "delta": True}
    removed = sorted(before.keys() - after.keys())
    if removed:
        delta["removed_slots"] = removed
    return delta


# ---------------------------------------------------------------------------------------------------------------
# Replies


def encode_reply(reply):
    """One strict JSON object and its newline. Surrogates from outside (argv) become question marks."""
    return strict_json.dumps(reply).encode("utf-8", "replace") + b"\n"


def shortened(text):
    return text if len(text) <= QUOTED_CHARS_MAX else text[:QUOTED_CHARS_MAX] + "…"


def run_tool(tool, inputs, before, describe_state):
    """Runs the tool and returns (encoded reply, slots after it). Never raises, whatever the tool does.

    `ok` is true exactly when `status` is OK, and `error` is empty exactly then. The tool works on its own copy of the
    slots, so that a failed one leaves the state as the request itself made it. A result whose reply would be over
    1 MiB is a TOOL_ERROR.
    """
    after = dict(before)
    try:
        output_json = strict_json.dumps(tool.function(inputs, after))
        reply = encode_reply(
            {
                "ok": True,
                "status": "OK",
                "output_json": output_json,
                "error": "",
                "ds_state": describe_state(before, after),
            }
        )
        if len(reply) + IDEMPOTENT_HIT_BYTES <= REPLY_BYTES_MAX:
            return reply, after
        error = "result too large: a reply holds at most 1 MiB"
    except ToolError as failure:
        error = str(failure)
    except BaseException as failure:  # sys.exit() in a tool must not end the session either
        error = shortened(f"{type(failure).__name__}: {failure}")
    reply = {"ok": False, "status": "TOOL_ERROR", "error": error or "the tool failed"}
    encoded = encode_reply({**reply, "ds_state": describe_state(before, before)})
    if len(encoded) + IDEMPOTENT_HIT_BYTES > REPLY_BYTES_MAX:
        encoded = encode_reply({**reply, "error": shortened(reply["error"])})
    return encoded, before


# ---------------------------------------------------------------------------------------------------------------
# Idempotency: a key belongs to an aid and an input, and lives 60 s from the end of the first execution.


class IdempotencyCache:
    """First results by (aid, key). Times are in milliseconds of any steady clock, passed in by the caller."""

    def __init__(self):
        self._entries = OrderedDict()  # (aid, key) → (expires_ms, fingerprint of the input, reply); oldest first

    def hit(self, aid, key, input_fingerprint, now_ms):
        """Returns the reply to send again, or None when the tool has to run.

        A hit is the first result with `idempotent_hit`, and changes nothing: not the key's time, not the state, so
        its `ds_state` is an empty delta. The same key with another input is refused.
        """
        entry = self._entries.get((aid, key))
        if entry is None or now_ms >= entry[0]:
            return None
        if entry[1] != input_fingerprint:
            raise Refusal("idempotency_key was used with another input")
        reply = strict_json.loads(entry[2])
        reply["idempotent_hit"] = True
        reply["ds_state"] = delta_state({}, {})
        return encode_reply(reply)

    def remember(self, aid, key, input_fingerprint, reply, now_ms):
        """Keeps the result of an execution; of 1,024 live keys the oldest gives way to a new one."""
        self._entries.pop((aid, key), None)
        while self._entries and next(iter(self._entries.values()))[0] <= now_ms:
            self._entries.popitem(last=False)
        while len(self._entries) >= IDEMPOTENCY_ENTRIES_MAX:
            self._entries.popitem(last=False)
        self._entries[(aid, key)] = (now_ms + IDEMPOTENCY_TTL_MS, input_fingerprint, reply)


def fingerprint(inputs):
    """A digest that is equal for inputs that differ only in key order, white space, escapes or number spelling."""
    import hashlib
    import json

    try:
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode("ascii")).digest()
    except RecursionError:
        raise Refusal("malformed input_json: nested too deeply") from None


# ---------------------------------------------------------------------------------------------------------------
# Leases: single-use permission tokens. Tier 0 needs none.


class LeaseTable:
    """Issued tokens: token → (tool aid, tier, expiry). Times as in IdempotencyCache."""

    def __init__(self):
        self._leases = OrderedDict()

    def issue(self, request, now_ms):
        """Answers `_lease.issue` with a new token."""
        tool_aid = string_member(request, "tool_aid", None)
        tier = request.get("tier")
        ttl_ms = request.get("ttl_ms", LEASE_TTL_MS_DEFAULT)
        if not tool_aid:
            raise Refusal("malformed request: tool_aid must not be empty")
        if not is_integer(tier) or not 0 <= tier <= LEASE_TIER_MAX:
            raise Refusal(f"malformed request: tier must be an integer from 0 to {LEASE_TIER_MAX}")
        if not is_integer(ttl_ms):
            raise Refusal("malformed request: ttl_ms must be an integer")
        ttl_ms = min(max(ttl_ms, LEASE_TTL_MS_MIN), LEASE_TTL_MS_MAX)
        while len(self._leases) >= LEASES_MAX:
            self._leases.popitem(last=False)
        token = "tok_" + os.urandom(16).hex()
        self._leases[token] = (tool_aid, tier, now_ms + ttl_ms)
        return encode_reply({"ok": True, "token_id": token})

    def check(self, request, aid, tier, now_ms):
        """Refuses a request for a tool of this tier without a good token. Spends nothing.

        No message ever repeats a token.
        """
        if "_lease_token" not in request:
            raise Refusal("lease_required", tier=tier, aid=aid)
        lease = self._leases.get(request["_lease_token"])
        if lease is None:
            raise Refusal("lease_rejected", reason="unknown or already used")
        lease_aid, lease_tier, expires_ms = lease
        if now_ms >= expires_ms:
            raise Refusal("lease_rejected", reason="expired")
        if lease_aid != aid:
            raise Refusal("lease_rejected", reason="issued for another tool")
        if lease_tier < tier:
            raise Refusal("lease_rejected", reason="issued for a lower tier")

    def spend(self, token):
        """A token works once: it is spent when its tool starts, whatever the outcome."""
        self._leases.pop(token, None)


# ---------------------------------------------------------------------------------------------------------------
# The two modes


class ServeHost:
    """Serve mode without its I/O: request lines in, reply lines out. State lives as long as the process."""

    def __init__(self, tools, lease_enforced=False, clock_ms=lambda: time.monotonic() * 1000):
        self._tools = tools
        self._lease_enforced = lease_enforced
        self._clock_ms = clock_ms
        self._slots = {}
        self._idempotency = IdempotencyCache()
        self._leases = LeaseTable()

    def answer(self, line):
        """One request line (None: a line over the limit) → one reply line, or None for a blank line."""
        try:
            if line is None:
                raise Refusal("request too large: a line holds at most 10 MiB")
            if not line.strip(b" \t\r"):
                return None
            return self._execute(parse_request(line))
        except Refusal as refusal:
            return encode_reply(refusal.reply)

    def _execute(self, request):
        """Everything that can refuse comes first, so that a refused request leaves state, cache and leases alone."""
        aid = string_member(request, "aid", None)
        if not aid:
            raise Refusal("malformed request: aid must not be empty")
        key = string_member(request, "idempotency_key", "")  # "" is no key
        token = string_member(request, "_lease_token", "")
        inputs = parse_input(request)
        before = state_after(self._slots, request)
        if aid == LEASE_ISSUE_AID:
            return self._leases.issue(request, self._clock_ms())
        tool = find_tool(self._tools, aid)
        needs_lease = self._lease_enforced and tool.tier > 0
        if needs_lease:
            self._leases.check(request, aid, tool.tier, self._clock_ms())
        if key:  # after the lease: a hit does not get round it
            input_fingerprint = fingerprint(inputs)
            reply = self._idempotency.hit(aid, key, input_fingerprint, self._clock_ms())
            if reply is not None:
                return reply
        if needs_lease:
            self._leases.spend(token)
        reply, self._slots = run_tool(tool, inputs, before, delta_state)
        if key:
            self._idempotency.remember(aid, key, input_fingerprint, reply, self._clock_ms())
        return reply


def answer_run(tools, aid, data):
    """Run mode without its I/O: all of stdin (None: over the limit) → the reply.

    Only `input_json` and `ds_state` are known members here; the aid comes from the command line.
    """
    try:
        if data is None:
            raise Refusal("request too large: stdin holds at most 10 MiB")
        request = parse_request(data)
        inputs = parse_input(request)
        before = state_after({}, request)
        reply, _ = run_tool(find_tool(tools, aid), inputs, before, lambda _, after: full_state(after))
        return reply
    except Refusal as refusal:
        return encode_reply(refusal.reply)


def find_tool(tools, aid):
    tool = tools.get(aid)
    if tool is None:
        raise Refusal(f"tool not found: {shortened(aid)}")
    return tool


# ---------------------------------------------------------------------------------------------------------------
# Input and output: bytes only, bounded, on file descriptors that no tool can reach.


def read_all(descriptor, bytes_max):
    """Everything up to EOF, or None as soon as it is more than `bytes_max`; the rest then stays unread."""
    data = bytearray()
    while len(data) <= bytes_max:
        chunk = os.read(descriptor, READ_BYTES)
        if not chunk:
            return data
        data += chunk
    return None


def read_lines(descriptor, bytes_max):
    """Yields each line without its LF as it completes, and the last one at EOF even without LF.

    A line over `bytes_max` yields None, once, when it crosses the limit; its bytes are dropped as they come, and
    reading goes on after its LF. At no time is more than `bytes_max` of a line held.
    """
    line = bytearray()
    discarding = False
    while True:
        chunk = os.read(descriptor, READ_BYTES)
        if not chunk:
            break
        start = 0
        while start < len(chunk):
            end = chunk.find(b"\n", start)
            complete = end >= 0
            stop = end if complete else len(chunk)
            if not discarding and len(line) + stop - start > bytes_max:
                line = bytearray()
                discarding = True
                yield None
            if not discarding:
                line += chunk[start:stop]
                if complete:
                    yield line
                    line = bytearray()
            if complete:
                discarding = False
            start = stop + 1
    if line:
        yield line


def write_all(descriptor, data):
    """Writes every byte now: replies are never held back."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def take_protocol_descriptors():
    """Moves the protocol away from descriptors 0 and 1 and returns its (input, output).

    From here on whatever a tool, a C library or a child process prints to stdout goes to stderr, and what it reads
    from stdin is empty: it can neither break the framing nor eat a request. Children do not inherit the copies.
    """
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:  # started without one of the three standard descriptors: this fills the gap
        null = os.open(os.devnull, os.O_RDWR)
    protocol_in, protocol_out = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    for descriptor in (protocol_in, protocol_out):
        os.set_blocking(descriptor, True)
    return protocol_in, protocol_out


def main(arguments):
    """Exit status: 0 at EOF and after every written reply, 1 when nobody reads the replies, 2 for wrong usage."""
    # Nothing needs tidying up, so the default action (end at once) is the right one, also where it was ignored.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    mode = arguments[0] if arguments else None
    if (mode, len(arguments)) not in (("--run", 3), ("--serve", 2)):
        sys.stderr.write("usage: toolhost.py --run PLUGIN AID | --serve PLUGIN\n")
        return 2
    protocol_in, protocol_out = take_protocol_descriptors()
    tools = conformance_tools(AllowedHosts(os.environ.get("MACHINA_HTTP_ALLOWED_HOSTS", "")))
    try:
        if mode == "--run":
            data = read_all(protocol_in, REQUEST_BYTES_MAX)
            write_all(protocol_out, answer_run(tools, arguments[2], data))
            return 0
        host = ServeHost(tools, lease_enforced=os.environ.get("MACHINA_LEASE_ENFORCE") == "1")
        for line in read_lines(protocol_in, REQUEST_BYTES_MAX):
            reply = host.answer(line)
            if reply is not None:
                write_all(protocol_out, reply)
        return 0
    except BrokenPipeError:
        return 1


# ---------------------------------------------------------------------------------------------------------------
# AID.NET.HTTP_GET.v1


class AllowedHosts:
    """The rule of MACHINA_HTTP_ALLOWED_HOSTS: comma-separated exact hosts, `*.suffix` (sub-domains only), or `*`.

    Empty allows all; separators only allow nothing. Names are compared without case and without the dot at the end;
    a port plays no part.
    """

    def __init__(self, rule):
        self._entries = [canonical_host(entry.strip().strip("[]")) for entry in rule.split(",") if entry.strip()]
        self._all = rule == "" or "*" in self._entries

    def allow(self, host):
        """`host` is canonical (see `canonical_host`)."""
        if self._all or host in self._entries:
            return True
        if ":" in host or host.rpartition(".")[2].isdigit():
            return False  # an address has no sub-domains
        return any(entry.startswith("*.") and host.endswith(entry[1:]) for entry in self._entries)


def canonical_host(host):
    """Lower case, no trailing dot, IPv6 in its shortest form."""
    host = host.lower()
    if ":" in host:
        import ipaddress

        try:
            return ipaddress.IPv6Address(host).compressed
        except ValueError:
            return host
    return host[:-1] if host.endswith(".") else host


def split_url(url):
    """Returns (scheme, canonical host, port or None, request target). Odd spellings are refused, not repaired.

    Where two parsers could disagree about the host (user-info, backslashes, control characters, percent signs or
    non-ASCII in the host) there is no answer that is safe.
    """
    import re

    match = re.fullmatch(
        r"(?P<scheme>https?)://(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?))"
        r"(?::(?P<port>[0-9]{1,5}))?(?P<target>[/?][!-\[\]-~]*)?",
        url.partition("#")[0],  # a fragment is never sent
        re.IGNORECASE | re.ASCII,
    )
    if match is None:
        raise ToolError("url must be a plain http or https URL, without user-info")
    target = match["target"] or "/"
    port = int(match["port"]) if match["port"] else None
    return (
        match["scheme"].lower(),
        canonical_host(match["ipv6"] or match["name"]),
        port,
        target if target.startswith("/") else "/" + target,
    )


def http_get(url, allowed_hosts):
    """Fetches `url`; every redirect is a new URL under the same rule. A host that is not listed is not contacted."""
    import urllib.parse

    deadline = time.monotonic() + HTTP_TIMEOUT_S
    for _ in range(HTTP_REDIRECTS_MAX + 1):
        scheme, host, port, target = split_url(url)
        if not allowed_hosts.allow(host):
            raise ToolError(f"host not allowed: {shortened(host)}")
        status, location, body = fetch(scheme, host, port, target, deadline)
        if status not in (301, 302, 303, 307, 308) or location is None:
            return {"status": status, "body": body.decode("utf-8", "replace")}
        url = urllib.parse.urljoin(url, location)
    raise ToolError("too many redirects")


def fetch(scheme, host, port, target, deadline):
    """One GET to exactly this host (no proxy): (status, Location or None, body). OSError when it fails."""
    import http.client
    import socket
    import threading

    connection_type = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    remaining_s = max(0.001, deadline - time.monotonic())
    connection = connection_type(host, port, timeout=remaining_s)

    def give_up():
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass  # not connected

    # A socket's own timeout starts anew with every byte; this one is for the whole exchange.
    timer = threading.Timer(remaining_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        connection.request("GET", target, headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(REPLY_BYTES_MAX + 1)
        if time.monotonic() >= deadline:
            raise ToolError("the server took too long")
        if len(body) > REPLY_BYTES_MAX:
            raise ToolError("the body is too large for a reply")
        return response.status, response.headers.get("Location"), body
    finally:
        timer.cancel()
        connection.close()


# ---------------------------------------------------------------------------------------------------------------
# Tools: the conformance roles. A tool is a function (inputs, slots) → output; it may change `slots`.


class Tool:
    def __init__(self, function, tier=0):
        self.function = function
        self.tier = tier


def echo(inputs, _slots):
    return inputs


def put(inputs, slots):
    try:
        slots[parse_slot(inputs.get("slot"))] = parse_artifact(inputs.get("artifact"))
    except ValueError as error:
        raise ToolError(str(error)) from None
    return {}


def get(inputs, slots):
    return {"artifact": slots.get(slot_of(inputs))}


def remove(inputs, slots):
    slots.pop(slot_of(inputs), None)
    return {}


def slot_of(inputs):
    try:
        return parse_slot(inputs.get("slot"))
    except ValueError as error:
        raise ToolError(str(error)) from None


def fail(inputs, _slots):
    raise ToolError(text_of(inputs, "message"))


def sleep(inputs, _slots):
    duration_ms = count_of(inputs, "ms")
    time.sleep(duration_ms / 1000)
    return {"slept_ms": duration_ms}


def blob(inputs, _slots):
    size_bytes = count_of(inputs, "bytes")
    if size_bytes > REPLY_BYTES_MAX:
        raise ToolError("a reply holds at most 1 MiB")  # before the memory is taken
    return {"data": "x" * size_bytes}


def noise(inputs, _slots):
    """Prints to the real descriptors 1 and 2, as a careless library would."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        try:
            write_all(descriptor, text_of(inputs, name).encode("utf-8"))
        except OSError:
            pass  # nobody listens to stderr
    return {}


def crash(_inputs, _slots):
    raise RuntimeError("the crash tool throws")


def text_of(inputs, name):
    value = inputs.get(name, "")
    if not isinstance(value, str):
        raise ToolError(f"{name} must be a string")
    return value


def count_of(inputs, name):
    value = inputs.get(name)
    if not is_integer(value) or value < 0:
        raise ToolError(f"{name} must be an integer, 0 or more")
    return value


def new_counter():
    """A tool that counts its own executions in this process."""
    count = 0

    def counter(_inputs, _slots):
        nonlocal count
        count += 1
        return {"count": count}

    return counter


def conformance_tools(allowed_hosts):
    """Every tool of this host, by aid."""
    roles = {
        "ECHO": Tool(echo),
        "COUNTER": Tool(new_counter()),
        "PUT": Tool(put),
        "GET": Tool(get),
        "REMOVE": Tool(remove),
        "FAIL": Tool(fail),
        "SLEEP": Tool(sleep),
        "BLOB": Tool(blob),
        "NOISE": Tool(noise),
        "CRASH": Tool(crash),
        "TIER1": Tool(new_counter(), tier=1),
        "TIER2": Tool(new_counter(), tier=2),
        "TIER3": Tool(new_counter(), tier=3),
        "HTTP_GET": Tool(lambda inputs, _slots: http_get(text_of(inputs, "url"), allowed_hosts)),
    }
    tools = {f"AID.PEERPROOF.{role}.v1": tool for role, tool in roles.items()}
    tools["AID.NET.HTTP_GET.v1"] = roles["HTTP_GET"]
    return tools


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
