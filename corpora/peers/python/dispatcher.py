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

TIMEOUT_S_DEFAULT = 30.0
REQUEST_BYTES_MAX = 10 * 1024 * 1024  # what a toolhost has to accept
REPLY_BYTES_MAX = 1024 * 1024  # all of its stdout; inclusive
STDERR_BYTES_KEPT = 2048
PIPE_BYTES = 64 * 1024
KILL_S_MAX = 0.8  # the contract gives one second
POLL_S = 0.005
WAIT_S_MAX = 60.0  # of one wait: the system refuses far longer ones
PR_SET_CHILD_SUBREAPER = 36


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


class Exchange:
    """Moves bytes to and from one running toolhost, in one loop, so that no pipe ever blocks another.

    Reads at most REPLY_BYTES_MAX + one pipe of stdout; stderr is always drained, its tail kept for messages only.
    """

    def __init__(self, process, request):
        self.process = process
        self.stdout = bytearray()
        self.stderr_tail = b""
        self._unsent = memoryview(request)
        self._selector = selectors.DefaultSelector()
        for pipe, event, action in (
            (process.stdin, selectors.EVENT_WRITE, self._send),
            (process.stdout, selectors.EVENT_READ, self._receive),
            (process.stderr, selectors.EVENT_READ, self._drain),
        ):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, event, action)

    def run_until(self, deadline):
        """Returns when the toolhost has exited and what it wrote is read. Raises CallError at the deadline or cap.

        The exit ends the call: a descendant that still holds the pipes is not waited for.
        """
        pidfd = open_pidfd(self.process.pid)
        if pidfd is not None:
            self._selector.register(pidfd, selectors.EVENT_READ, None)
        try:
            while not has_exited(self.process.pid):
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    raise CallError("timeout", "the toolhost did not finish in time")
                self._step(min(remaining_s, WAIT_S_MAX if pidfd is not None else POLL_S))
            while self._step(0):
                pass  # what is in the pipes already
        finally:
            self._selector.close()
            if pidfd is not None:
                os.close(pidfd)

    def _step(self, wait_s):
        """Waits for events and handles them. Returns whether stdout brought anything."""
        received = len(self.stdout)
        for key, _ in self._selector.select(wait_s):
            if key.data is not None:
                key.data(key.fileobj)
        if len(self.stdout) > REPLY_BYTES_MAX:
            raise CallError("parse_error", "the toolhost wrote more than 1 MiB to stdout")
        return len(self.stdout) > received

    def _send(self, pipe):
        try:
            self._unsent = self._unsent[os.write(pipe.fileno(), self._unsent[:PIPE_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = self._unsent[:0]  # it may answer without reading everything
        if not self._unsent:
            self._close(pipe)

    def _receive(self, pipe):
        self.stdout += self._read(pipe)

    def _drain(self, pipe):
        self.stderr_tail = (self.stderr_tail + self._read(pipe))[-STDERR_BYTES_KEPT:]

    def _read(self, pipe):
        try:
            data = os.read(pipe.fileno(), PIPE_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self._close(pipe)
        return data

    def _close(self, pipe):
        self._selector.unregister(pipe)
        pipe.close()


def open_pidfd(pid):
    """A descriptor that becomes readable when the process exits, where the system has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def has_exited(pid):
    """Whether our child has exited. It stays a zombie, so that its process group id cannot be reused yet."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def adopt_orphans():
    """Makes descendants whose parent dies our children (Linux), so that leaving the group hides nobody."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # best effort: the process group is killed anyway


def living_processes():
    """All processes as {pid: (parent pid, state letter)}; empty where there is no /proc."""
    processes = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return processes
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue  # ended meanwhile
            processes[int(name)] = (int(parent), state)
    return processes


def descendants(root):
    """Our descendants as [(pid, parent pid, is a zombie)]: the toolhost, its children, and adopted orphans."""
    processes = living_processes()
    children = {}
    for pid, (parent, state) in processes.items():
        children.setdefault(parent, []).append((pid, parent, state in (b"Z", b"X")))
    found, parents = [], [root]
    while parents:
        for child in children.get(parents.pop(), []):
            found.append(child)
            parents.append(child[0])
    return found


def kill_tree(process):
    """Ends the toolhost, its process group, and every descendant, in the group or not; returns when they are gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    kill_descendants(unreaped=process.pid)
    try:
        process.wait(KILL_S_MAX)  # reaped last: until here its process group id is not given to anybody else
    except subprocess.TimeoutExpired:
        pass  # the system does not let it go


def kill_descendants(unreaped=None):
    """Kills and reaps every descendant, in rounds: one may fork, or lose its parent, between the look and the kill."""
    deadline = time.monotonic() + KILL_S_MAX
    alive = True
    while alive and time.monotonic() < deadline:
        alive = False
        for pid, parent, zombie in descendants(os.getpid()):
            if not zombie:
                alive = True
                kill(pid)
            elif parent == os.getpid() and pid != unreaped:
                os.waitpid(pid, os.WNOHANG)
        if alive:
            time.sleep(POLL_S)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


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
        exchange.run_until(deadline)
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
