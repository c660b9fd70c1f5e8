#!/usr/bin/env python3
"""An example dispatcher: the consumer side of the toolhost boundary, in the standard library alone.

    dispatcher.py TOOLHOST           one call {"aid": …, "inputs": {…}} on stdin, its result on stdout

Starts `TOOLHOST --run plugin AID`, sends it one request, and prints the tool's output as a JSON value, or an error
object `{"error": true, "aid", "type", "detail"}`:

    timeout      the toolhost needed more than MACHINA_TOOLHOST_TIMEOUT seconds (default 30, fractions allowed)
    crash        it exited with another status than 0, or by a signal
    parse_error  its stdout was no reply: not one strict JSON object, cut short, over 1 MiB, or contradicting itself
    not_found    there is no toolhost at that path
    exception    anything else, a failure that the tool itself reports among it

Whatever happens, nothing of the toolhost outlives the call. Exit status: 0 with an output, 1 with an error object.
"""

import math
import os
import selectors
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leave no file behind

import strict_json  # noqa: E402
from process_output import PIPE_BYTES, Output  # noqa: E402
from process_tree import adopt_orphans, kill_descendants, kill_tree  # noqa: E402

TIMEOUT_S_DEFAULT = 30.0
REQUEST_BYTES_MAX = 10 * 1024 * 1024  # what a toolhost has to accept
REPLY_BYTES_MAX = 1024 * 1024  # all of its stdout; inclusive


class CallError(Exception):
    """The call failed; `type` is one of the five documented ones."""

    def __init__(self, type, detail):
        super().__init__(detail)
        self.type = type
        self.detail = detail


class Terminated(Exception):
    """We were asked to end."""


def parse_call(data):
    """stdin → the call. Wrong types are refused here and below, never replaced by defaults."""
    try:
        call = strict_json.loads(data)
    except strict_json.MalformedJson as error:
        raise CallError("exception", f"malformed call: {error}") from None
    if not isinstance(call, dict):
        raise CallError("exception", "malformed call: not a JSON object")
    return call


def aid_of(call):
    aid = call.get("aid")
    if not isinstance(aid, str) or not aid:
        raise CallError("exception", "malformed call: aid must be a string that is not empty")
    return aid


def inputs_of(call):
    """Absent `inputs` means {}."""
    inputs = call.get("inputs", {})
    if not isinstance(inputs, dict):
        raise CallError("exception", "malformed call: inputs must be an object")
    return inputs


def build_request(aid, inputs):
    """The one request line of a call, in the toolhost's own shape: the input travels as a string of JSON."""
    request = {"aid": aid, "input_json": strict_json.dumps(inputs)}
    line = strict_json.dumps(request).encode("utf-8") + b"\n"
    if len(line) > REQUEST_BYTES_MAX:
        raise CallError("exception", "the inputs are larger than a toolhost accepts")
    return line


def timeout_from(setting):
    """Seconds from MACHINA_TOOLHOST_TIMEOUT; what is not a positive number means the default."""
    try:
        seconds = float(setting)
    except ValueError:
        return TIMEOUT_S_DEFAULT
    return seconds if math.isfinite(seconds) and seconds > 0 else TIMEOUT_S_DEFAULT


def start(path, aid):
    """Starts the toolhost in a session, and so a process group, of its own."""
    path = os.path.abspath(path)  # a path and not a name to look up
    try:
        return subprocess.Popen(
            [path, "--run", "plugin", aid],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        # A script whose interpreter is missing fails in the same way.
        kind = "exception" if os.path.exists(path) else "not_found"
        raise CallError(kind, f"toolhost not started: {error}") from None
    except NotADirectoryError as error:
        raise CallError("not_found", f"toolhost not started: {error}") from None
    except (OSError, ValueError) as error:
        raise CallError("exception", f"toolhost not started: {error}") from None


class Exchange(Output):
    """Moves bytes to and from one running toolhost. Raises CallError at the deadline or cap."""

    def __init__(self, process, request):
        late = CallError("timeout", "the toolhost did not finish in time")
        too_much = CallError("parse_error", "the toolhost wrote more than 1 MiB to stdout")
        super().__init__(process, REPLY_BYTES_MAX, late, too_much)
        self._unsent = memoryview(request)
        self._watch(process.stdin, selectors.EVENT_WRITE, self._send)

    def _send(self, pipe):
        try:
            self._unsent = self._unsent[os.write(pipe.fileno(), self._unsent[:PIPE_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = self._unsent[:0]  # it may answer without reading everything
        if not self._unsent:
            self._close(pipe)


def exit_error(process, stderr_tail):
    """The CallError of a toolhost that did not exit with 0, or None."""
    status = process.poll()
    if status == 0:
        return None
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    tail = stderr_tail.decode("utf-8", "replace").strip()
    return CallError("crash", f"the toolhost ended with {how}" + (f": {tail}" if tail else ""))


def output_of(stdout):
    """The tool's output, as the JSON text it sent. Only a reply without any contradiction is a success."""
    try:
        reply = strict_json.loads(stdout)
    except strict_json.MalformedJson as error:
        raise CallError("parse_error", f"the reply is not one JSON value: {error}") from None
    if not isinstance(reply, dict):
        raise CallError("parse_error", "the reply is not a JSON object")
    if reply.get("ok") is False:
        error = reply.get("error")
        raise CallError("exception", error if isinstance(error, str) and error else "the tool failed")
    if reply.get("ok") is not True:
        raise CallError("parse_error", "the reply's ok is not a boolean")
    if reply.get("status") != "OK" or reply.get("error", "") != "":
        raise CallError("parse_error", "the reply says ok, but has another status or an error")
    text = reply.get("output_json")
    if not isinstance(text, str):
        raise CallError("parse_error", "the reply has no output_json string")
    try:
        strict_json.loads(text)
    except strict_json.MalformedJson as error:
        raise CallError("parse_error", f"output_json is not one JSON value: {error}") from None
    return text


def call_toolhost(path, aid, inputs, timeout_s):
    """One call from start to end: returns the output as JSON text or raises CallError."""
    request = build_request(aid, inputs)
    deadline = time.monotonic() + timeout_s
    process = start(path, aid)
    try:
        exchange = Exchange(process, request)
        exchange.read_until(deadline)
    finally:
        kill_tree(process)
    error = exit_error(process, exchange.stderr_tail)
    if error is not None:
        raise error
    return output_of(exchange.stdout)


def read_stdin():
    data = bytearray()
    while True:
        chunk = os.read(0, PIPE_BYTES)
        if not chunk:
            return data
        data += chunk
        if len(data) > REQUEST_BYTES_MAX:
            raise CallError("exception", "the call is larger than a toolhost accepts")


def terminate(_signal, _frame):
    raise Terminated


def main(arguments):
    if len(arguments) != 1:
        sys.stderr.write('usage: dispatcher.py TOOLHOST   with {"aid": …, "inputs": {…}} on stdin\n')
        return 2
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored (some parents leave it so), exit statuses would be lost
    adopt_orphans()
    aid, status = "", 0
    try:
        call = parse_call(read_stdin())
        aid = aid_of(call)
        timeout_s = timeout_from(os.environ.get("MACHINA_TOOLHOST_TIMEOUT", ""))
        result = call_toolhost(arguments[0], aid, inputs_of(call), timeout_s)
    except Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        kill_descendants()  # again: the signal may have come in the middle of starting or killing
        return 128 + signal.SIGTERM
    except Exception as error:
        known = isinstance(error, CallError)
        result = strict_json.dumps(
            {
                "error": True,
                "aid": aid,
                "type": error.type if known else "exception",
                "detail": error.detail if known else f"{type(error).__name__}: {error}",
            }
        )
        status = 1
    view = memoryview(result.encode("utf-8", "replace") + b"\n")
    try:
        while view:
            view = view[os.write(1, view) :]
    except BrokenPipeError:
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
