#!/usr/bin/env python3
"""A caller of envelope engines: has the envelopes of a scenario processed, one call after the other.

    envelope_caller.py SCENARIO RESULTS

For each call it starts a program or POSTs to a server, and appends one line to RESULTS: how the call ended. What comes back
is checked and completed as an engine would do it, and nothing of it is repaired.
"""

import http.client
import subprocess
import sys
import threading
import time
import urllib.parse

import strict_json
from envelope_engine import processed
from process_output import Output
from process_tree import adopt_orphans, kill_tree

TIMEOUT_MS = 10_000
REPLY_BYTES_MAX = 16 * 1024 * 1024
BLOCK_BYTES = 64 * 1024
IDS = ("envelope_id", "request_id", "session_id")
CORE = IDS + ("user_id", "raw_input", "outputs", "current_stage", "terminated")


class Late(Exception):
    """The time of a call is over."""


class TooLarge(Exception):
    """A reply is longer than what is taken."""


def envelope_of(value):
    """The envelope that `value` is, complete; raises ValueError where it is none."""
    if not isinstance(value, dict) or any(value.get(name) is None for name in CORE):
        raise ValueError("a required member is missing")
    return processed(strict_json.dumps(value))


def judged(reply, sent):
    """The outcome of a reply that came with success."""
    try:
        given = strict_json.loads(reply)
        envelope = envelope_of(given)
    except ValueError:
        return {"outcome": "invalid"}
    if any(envelope[name] != sent[name] for name in IDS):
        return {"outcome": "invalid"}
    return {"outcome": "envelope", "envelope": envelope}


def feed(pipe, request):
    """Writes a request and closes the pipe; a program need not read all of it."""
    try:
        pipe.write(request)
    except OSError:
        pass
    try:
        pipe.close()
    except OSError:
        pass


def run(argv, request, deadline):
    """Starts a program with a request on its standard input; returns its exit status and what it wrote."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(argv, start_new_session=True, bufsize=0, **pipes)
    writer = threading.Thread(target=feed, args=(process.stdin, request), daemon=True)
    try:
        writer.start()
        output = Output(process, REPLY_BYTES_MAX, Late(), TooLarge())
        output.read_until(deadline)
    finally:
        kill_tree(process)
        writer.join(1)
    return process.returncode, bytes(output.stdout)


def by_program(call, request, sent, deadline):
    try:
        status, reply = run(call["command"], request, deadline)
    except OSError:
        return {"outcome": "failed"}
    if status < 0:
        return {"outcome": "failed"}
    if status > 0:
        return {"outcome": "refused", "status": status}
    return judged(reply, sent)


def by_server(call, request, sent, deadline):
    url = urllib.parse.urlsplit(call["url"])
    path = (url.path or "/") + ("?" + url.query if url.query else "")
    left_s = max(deadline - time.monotonic(), 0.001)
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=left_s)
    reply = b""
    # Whatever trickles, the connection ends in time.
    timer = None
    try:
        connection.connect()
        timer = threading.Timer(max(deadline - time.monotonic(), 0), cut, [connection.sock])
        timer.daemon = True
        timer.start()
        connection.request("POST", path, request, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            return {"outcome": "refused", "status": response.status}
        while block := response.read1(BLOCK_BYTES):
            reply += block
            if len(reply) > REPLY_BYTES_MAX:
                raise TooLarge
        if response.length:
            raise ConnectionError("the body is cut short")
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= deadline:
            raise Late from error
        return {"outcome": "failed"}
    finally:
        if timer:
            timer.cancel()
        connection.close()
    if time.monotonic() >= deadline:
        raise Late
    return judged(reply, sent)


def cut(sock):
    try:
        sock.shutdown(2)
    except OSError:
        pass


def outcome_of(call, begun):
    """How a call ended, as members of its line."""
    try:
        sent = envelope_of(call["envelope"])
    except ValueError:
        return {"outcome": "bad_input"}
    request = strict_json.dumps(sent).encode("utf-8") + b"\n"
    deadline = begun + call.get("timeout_ms", TIMEOUT_MS) / 1000
    make = by_server if call["transport"] == "http" else by_program
    try:
        return make(call, request, sent, deadline)
    except Late:
        return {"outcome": "timeout"}
    except TooLarge:
        return {"outcome": "invalid"}


def ordered(calls):
    """The calls, each behind those that it comes after."""
    left, done = list(calls), set()
    while left:
        due = next((call for call in left if done.issuperset(call.get("after", []))), left[0])
        left.remove(due)
        done.add(due["ref"])
        yield due


def main(arguments):
    if len(arguments) != 2:
        print("usage: envelope_caller.py SCENARIO RESULTS", file=sys.stderr)
        return 2
    adopt_orphans()
    with open(arguments[0], "rb") as file:
        scenario = strict_json.loads(file.read())
    with open(arguments[1], "ab") as results:
        for call in ordered(scenario["calls"]):
            begun = time.monotonic()
            told = outcome_of(call, begun)
            line = {"ref": call["ref"], "elapsed_ms": round((time.monotonic() - begun) * 1000), **told}
            results.write(strict_json.dumps(line).encode("utf-8") + b"\n")
            results.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
