#!/usr/bin/env python3
"""A JSON-RPC client on standard input and output, driven by a scenario file; standard library only.

    json_rpc_client.py SCENARIO RESULTS

It makes the calls of the scenario over its standard streams and appends one JSON line to the results file for each
call that has finished. It exits with 0 when all have.
"""

import base64
import hashlib
import hmac
import json
import os
import random
import secrets
import select
import sys
import time

from canonical_json import canonical
import strict_json

LINE_BYTES_MAX = 1_048_576
SIGNED = b"JSONRPC-HMAC-SHA256-V1\n"


# --- Calls


class Call:
    """One call of the scenario and what has become of it."""

    def __init__(self, spec, usual_retry):
        retry = spec.get("retry", usual_retry)
        self.ref = spec["ref"]
        self.spec = spec
        self.timeout_s = spec["timeout_ms"] / 1000
        self.max_attempts = retry.get("max_attempts", usual_retry.get("max_attempts", 1))
        self.base_s = retry.get("base_ms", usual_retry.get("base_ms", 100)) / 1000
        self.began = None
        self.attempts = 0
        self.id = None  # of the request that waits
        self.again_at = None  # when it is sent again
        self.stream = None
        self.done = False

    @property
    def deadline(self):
        return self.began + self.timeout_s


class Stream:
    """What the server streamed on the way to an answer."""

    def __init__(self, stream_id):
        self.id = stream_id
        self.chunks = 0
        self.whole = True
        self.ended = False

    def data(self, params):
        self.chunks += 1
        self.whole &= params.get("sequence") == self.chunks and not self.ended

    def end(self, params):
        self.whole &= params.get("total_chunks") == self.chunks and not self.ended
        self.ended = True


class Client:
    """Makes the calls of a scenario."""

    def __init__(self, scenario, results):
        usual_retry = scenario.get("retry", {})
        self.calls = [Call(spec, usual_retry) for spec in scenario["calls"]]
        self.by_ref = {call.ref: call for call in self.calls}
        self.auth = scenario.get("auth")
        self.results = results
        self.last_id = 0
        self.deserted = False
        self.out = bytearray()

    # Requests

    def request(self, call):
        message = {"jsonrpc": "2.0", "method": call.spec["method"]}
        if "params" in call.spec:
            message["params"] = call.spec["params"]
        if not call.spec.get("notify"):
            self.last_id += 1
            message["id"] = call.id = f"{self.last_id}"
        if self.auth:
            auth = {"timestamp": int(time.time()), "nonce": secrets.token_hex(16)}
            if self.auth.get("key_id") is not None:
                auth["key_id"] = self.auth["key_id"]
            message["auth"] = auth
            text = SIGNED + canonical(message).encode()
            digest = hmac.new(self.auth["key"].encode(), text, hashlib.sha256).digest()
            auth["signature"] = base64.b64encode(digest).decode()
        return message

    def send(self, calls, is_batch):
        messages = [self.request(call) for call in calls]
        text = json.dumps(messages if is_batch else messages[0], ensure_ascii=False, separators=(",", ":"))
        line = text.encode("utf-8", "surrogatepass")
        if len(line) > LINE_BYTES_MAX:
            for call in calls:
                self.finish(call, "too_large")
            return
        self.out += line + b"\n"
        for call in calls:
            call.attempts += 1
            call.again_at = None
            call.stream = None
            if call.spec.get("notify"):
                self.finish(call, "sent")

    def start_ready(self):
        def ready(call):
            return all(self.by_ref[ref].done for ref in call.spec.get("after", []))

        progress = True
        while progress:
            progress = False
            for call in self.calls:
                if call.done or call.began is not None or not ready(call):
                    continue
                batch = call.spec.get("batch")
                together = [call] if batch is None else [c for c in self.calls if c.spec.get("batch") == batch]
                if not all(ready(other) for other in together):
                    continue
                progress = True
                if self.deserted:
                    self.finish(call, "disconnected")
                    continue
                for other in together:
                    other.began = time.monotonic()
                self.send(together, batch is not None)

    def finish(self, call, outcome, value=None):
        elapsed_s = 0 if call.began is None else time.monotonic() - call.began
        line = {"ref": call.ref, "outcome": outcome, "attempts": call.attempts, "elapsed_ms": round(elapsed_s * 1000)}
        if outcome in ("result", "error"):
            line[outcome] = value
        if call.stream is not None:
            line["chunks"] = call.stream.chunks
            line["stream_ok"] = call.stream.whole and call.stream.ended
        self.results.write(strict_json.dumps(line) + "\n")
        self.results.flush()
        call.done = True
        call.id = None
        call.again_at = None

    # Answers

    def take(self, line):
        try:
            message = strict_json.loads(line)
        except strict_json.MalformedJson:
            return  # noise
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict):
                self.message(part)

    def message(self, message):
        if "method" in message:
            self.notified(message)
            return
        message_id = message.get("id")
        if message_id is None:
            waiting = [call for call in self.calls if call.id is not None or call.again_at is not None]
            if len(waiting) == 1 and waiting[0].id is not None and is_error(message.get("error")):
                self.finish(waiting[0], "error", message["error"])
            return
        for call in self.calls:
            if call.id is not None and isinstance(message_id, str) and call.id == message_id:
                self.answer(call, message)
                return

    def answer(self, call, message):
        if message.get("jsonrpc") != "2.0" or ("result" in message) == ("error" in message):
            self.finish(call, "invalid")
            return
        if "result" in message:
            self.finish(call, "result", message["result"])
            return
        error = message["error"]
        if not is_error(error):
            self.finish(call, "invalid")
            return
        data = error.get("data") if isinstance(error.get("data"), dict) else {}
        transient = error["code"] in (-32001, -32002) or (error["code"] == -32000 and data.get("type") == "TIMEOUT")
        if transient and call.attempts < call.max_attempts:
            delay_s = call.base_s * 2 ** (call.attempts - 1) * random.uniform(0.5, 1.5)
            asked_ms = data.get("retry_after_ms")
            if isinstance(asked_ms, (int, float)) and not isinstance(asked_ms, bool):
                delay_s = max(delay_s, asked_ms / 1000)
            call.id = None
            call.again_at = time.monotonic() + delay_s
        else:
            self.finish(call, "error", error)

    def notified(self, message):
        params = message.get("params")
        if not isinstance(params, dict):
            return
        waiting = [call for call in self.calls if call.id is not None]
        if message["method"] == "stream_start":
            for call in waiting:
                if call.id == params.get("task_id"):
                    if call.stream is None:
                        call.stream = Stream(params.get("stream_id"))
                    else:
                        call.stream.whole = False
            return
        for call in waiting:
            if call.stream is not None and call.stream.id == params.get("stream_id"):
                if message["method"] == "stream_data":
                    call.stream.data(params)
                elif message["method"] == "stream_end":
                    call.stream.end(params)

    # Time and the pipes

    def look_at_the_clock(self):
        now = time.monotonic()
        for call in self.calls:
            if call.done or call.began is None:
                continue
            if now >= call.deadline:
                self.finish(call, "timeout")
            elif call.again_at is not None and now >= call.again_at:
                self.send([call], False)

    def next_moment(self):
        moments = []
        for call in self.calls:
            if not call.done and call.began is not None:
                moments.append(call.deadline if call.again_at is None else min(call.again_at, call.deadline))
        return max(0, min(moments) - time.monotonic()) if moments else None

    def server_gone(self):
        self.deserted = True
        self.out.clear()
        for call in self.calls:
            if not call.done and call.began is not None:
                self.finish(call, "disconnected")

    def run(self):
        lines = Lines()
        os.set_blocking(1, False)
        while True:
            self.start_ready()
            if all(call.done for call in self.calls) and not self.out:
                return
            writing = [1] if self.out else []
            readable, writable, _ = select.select([0], writing, [], self.next_moment())
            if writable:
                try:
                    written = os.write(1, self.out[:65536])
                    del self.out[:written]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    self.server_gone()
            if readable:
                chunk = os.read(0, 65536)
                self.look_at_the_clock()
                for line in lines.feed(chunk):
                    self.take(line)
                if not chunk:
                    self.server_gone()
            self.look_at_the_clock()


class Lines:
    """Cuts a stream into lines; one that is too long is dropped as it comes."""

    def __init__(self):
        self.held = bytearray()
        self.dropping = False

    def feed(self, chunk):
        if not chunk:
            # The last line, where it is not ended.
            rest, self.held = bytes(self.held), bytearray()
            return [rest] if rest and not self.dropping else []
        *complete, rest = chunk.split(b"\n")
        lines = []
        for part in complete:
            whole = bytes(self.held) + part
            if not self.dropping and len(whole) <= LINE_BYTES_MAX:
                lines.append(whole)
            self.held = bytearray()
            self.dropping = False
        if not self.dropping:
            self.held += rest
            if len(self.held) > LINE_BYTES_MAX:
                self.held = bytearray()
                self.dropping = True
        return lines


def is_error(error):
    return (
        isinstance(error, dict)
        and isinstance(error.get("code"), int)
        and not isinstance(error.get("code"), bool)
        and isinstance(error.get("message"), str)
    )


def main():
    if len(sys.argv) != 3:
        print("usage: json_rpc_client.py SCENARIO RESULTS", file=sys.stderr)
        return 2
    with open(sys.argv[1], "rb") as file:
        scenario = strict_json.loads(file.read())
    with open(sys.argv[2], "a", encoding="utf-8") as results:
        Client(scenario, results).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
