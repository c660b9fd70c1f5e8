"""A JSON-RPC 2.0 server on lines with the methods of a planner and an executor; the Python standard library alone.

One message or batch a line comes in on standard input, one response or array of responses a line goes out. Text that
is doubtful (two members with one name, a lone surrogate, a number beyond every double) is refused as a whole.

Methods that wait run in threads of their own: others are answered meanwhile, and a call that is not done in its time
(`params.options.timeout_ms`) is answered by a timeout; what it comes to later goes nowhere.

Signatures, a rate limit, compressed messages and streams are options: json_rpc_server.py --help.
"""

import os
import sys
import threading
import time

import strict_json
from json_rpc_guards import Corrupt, Guards, TooLarge, body_of_envelope, options
from json_rpc_methods import MESSAGE_BYTES_MAX, InvalidParams, Methods, timeout_ms
from json_rpc_replies import (
    EXECUTION_FAILED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MESSAGE_TOO_LARGE,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    TIMEOUT,
    failure,
    fitted,
    success,
)

READ_BYTES = 65_536
BATCH_ELEMENTS_MAX = 10_000
EOF_GRACE_S = 1.2


class Server:
    """Takes lines and writes what answers them."""

    def __init__(self, out, methods=None, guards=None):
        self.methods = methods or Methods()
        self.guards = guards or Guards()
        self.out = out
        self.lock = threading.Lock()
        self.under_way = []

    def write(self, response):
        with self.lock:
            self.out.write(fitted(response) + b"\n")
            self.out.flush()

    def call(self, run, params, id):
        """Returns the response of a function that takes the params, however it ends."""
        try:
            return success(run(params), id)
        except InvalidParams as error:
            return failure(INVALID_PARAMS, id, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a method raises is its failure, never ours
            return failure(EXECUTION_FAILED, id, str(error))

    def begin(self, message, in_batch=False):
        """Carries a message out, or begins to. Returns what gives its response, or None where there is none."""
        if not isinstance(message, dict):
            return lambda: failure(INVALID_REQUEST)
        id = message.get("id")
        if isinstance(id, (bool, list, dict)):
            return lambda: failure(INVALID_REQUEST)
        method, params = message.get("method"), message.get("params")
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            return lambda: failure(INVALID_REQUEST, id)
        if not isinstance(params, (list, dict)) and params is not None:
            return lambda: failure(INVALID_REQUEST, id)
        silent = "id" not in message
        response = self.guards.refusal(message, id)
        if response is None and method not in self.methods.table:
            response = failure(METHOD_NOT_FOUND, id)
        if response is None:
            run = self.methods.table[method]
            try:
                limit_ms = timeout_ms(params)
            except InvalidParams as error:
                response = failure(INVALID_PARAMS, id, str(error))
            else:
                if self.guards.stream and id is not None and not in_batch and self.methods.is_streamed(method, params):
                    return self.begin_stream(params, id, limit_ms)
                if method in self.methods.waiting:
                    wait = self.begin_waiting(run, params, id, limit_ms)
                    return None if silent else wait
                response = self.call(run, params, id)
        return None if silent else lambda: response

    def begin_stream(self, params, id, limit_ms):
        stream = Stream(self.write, id)
        return self.begin_waiting(lambda params: stream.run(self.methods, params), params, id, limit_ms, stream)

    def begin_waiting(self, run, params, id, limit_ms, stream=None):
        deadline = time.monotonic() + limit_ms / 1_000
        done = threading.Event()
        kept = []

        def work():
            kept.append(self.call(run, params, id))
            done.set()

        threading.Thread(target=work, daemon=True).start()

        def wait():
            in_time = done.wait(max(0.0, deadline - time.monotonic()))
            if stream is not None:
                stream.end()
            return kept[0] if in_time else failure(TIMEOUT, id)

        wait.takes_time = True
        return wait

    def take(self, line, inflated=False):
        """Answers one line, now or when it is done."""
        try:
            message = strict_json.loads(line)
        except strict_json.AmbiguousJson as error:
            kind = INVALID_REQUEST if self.guards.signatures else PARSE_ERROR
            return self.write(failure(kind, None, str(error)))
        except strict_json.MalformedJson as error:
            return self.write(failure(PARSE_ERROR, None, str(error)))
        is_envelope = isinstance(message, dict) and "encoding" in message and "method" not in message
        if is_envelope and self.guards.gzip and not inflated:
            return self.take_compressed(lambda: body_of_envelope(message))
        if not isinstance(message, list):
            return self.answer([self.begin(message)], lambda responses: responses[0])
        if not message or len(message) > BATCH_ELEMENTS_MAX:
            return self.write(failure(INVALID_REQUEST))
        return self.answer([self.begin(element, in_batch=True) for element in message], list)

    def take_compressed(self, inflated):
        """Answers the line that a function makes of what came compressed."""
        try:
            line = inflated()
        except Corrupt as error:
            return self.write(failure(PARSE_ERROR, None, str(error)))
        except TooLarge as error:
            return self.write(failure(MESSAGE_TOO_LARGE, None, str(error)))
        except ValueError as error:
            return self.write(failure(INVALID_REQUEST, None, str(error)))
        return self.take(line, inflated=True)

    def answer(self, begun, form):
        waits = [wait for wait in begun if wait is not None]
        if not waits:
            return

        def finish():
            self.write(form([wait() for wait in waits]))

        if any(hasattr(wait, "takes_time") for wait in waits):
            self.under_way = [thread for thread in self.under_way if thread.is_alive()]
            self.under_way.append(threading.Thread(target=finish, daemon=True))
            self.under_way[-1].start()
        else:
            finish()

    def end(self):
        """Finishes what needs little time; the rest is dropped."""
        deadline = time.monotonic() + EOF_GRACE_S
        for thread in self.under_way:
            thread.join(max(0.0, deadline - time.monotonic()))
        # What is being written is written whole.
        self.lock.acquire()


class Stream:
    """What a task says on the way to its response; nothing after its end."""

    def __init__(self, write, task_id):
        self.write = write
        self.task_id = task_id
        self.id = f"stream-{os.urandom(8).hex()}"
        self.lock = threading.Lock()
        self.sequence = None  # of the last chunk; None before the start
        self.ended = False

    def run(self, methods, params):
        """Carries a task out, and returns its result."""
        parts = methods.execute_in_parts(params)
        while True:
            try:
                chunk = next(parts)
            except StopIteration as end:
                return end.value
            with self.lock:
                if self.ended:
                    return None
                if self.sequence is None:
                    self.sequence = 0
                    self.notify("stream_start", task_id=self.task_id)
                self.sequence += 1
                self.notify("stream_data", chunk=chunk, sequence=self.sequence)

    def end(self):
        with self.lock:
            if self.sequence is not None and not self.ended:
                self.notify("stream_end", total_chunks=self.sequence)
            self.ended = True

    def notify(self, method, **params):
        self.write({"jsonrpc": "2.0", "method": method, "params": {"stream_id": self.id, **params}})


def lines(read):
    """Yields each line without its line feed, and None for one that has too many bytes, at its line feed."""
    held = bytearray()
    passing = False
    while chunk := read():
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if not passing:
                held += chunk[start:end]
            size = len(held) - held.endswith(b"\r")
            yield None if passing or size > MESSAGE_BYTES_MAX else bytes(held)
            held.clear()
            passing = False
            start = end + 1
        if not passing:
            held += chunk[start:]
        if len(held) > MESSAGE_BYTES_MAX + 1:
            passing = True
            held.clear()
    if passing or len(held) > MESSAGE_BYTES_MAX:
        yield None
    elif held:
        yield bytes(held)


def main():
    server = Server(sys.stdout.buffer, guards=Guards(options()))
    for line in lines(lambda: os.read(0, READ_BYTES)):
        if line is None:
            server.write(failure(MESSAGE_TOO_LARGE))
        elif line.strip(b" \t\r"):
            server.take(line)
    server.end()


if __name__ == "__main__":
    main()
