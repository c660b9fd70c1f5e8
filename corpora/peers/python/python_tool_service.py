#!/usr/bin/env python3
"""A service of Python tools over HTTP: each call is run by a local runner in a process of its own.

    python_tool_service.py PORT

Calls are posted to any path, handshakes to /capabilities/handshake. The runner watches guarantees by an audit hook, so a
handshake that asks for some is answered by `partial`; they are in force in later calls of the tool all the same.
"""

import os
import signal
import subprocess
import sys
import threading

import strict_json
from http_bodies import Handler, Server
from python_tool_runner import FORBIDDEN, REQUEST_BYTES_MAX, call_of, failure, is_text, need

HANDSHAKE = "/capabilities/handshake"
RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_tool_runner.py")
TIMEOUT_DEFAULT_MS = 10_000
TIMEOUT_MAX_MS = 86_400_000
GRACE_S = 0.3
# What a call and the request of a runner have in common.
SHARED = ("protocol_version", "entry", "payload", "trace_id")


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def timeout_of(call):
    need(call.get("kind") in (None, "python"), "kind is python")
    need(isinstance(call.get("project") or {}, dict), "project is an object")
    timeout_ms = call.get("timeout_ms", TIMEOUT_DEFAULT_MS)
    need(is_whole(timeout_ms) and timeout_ms > 0, "timeout_ms is a whole number from 1 on")
    return min(timeout_ms, TIMEOUT_MAX_MS) / 1000


def handshake_of(asked):
    """The name of the tool, and the guarantees that it needs."""
    version, required = asked.get("protocol_version"), asked.get("required_guarantees")
    need(version == 1 and not isinstance(version, bool), "protocol_version is 1")
    need(is_text(asked.get("tool_name")) and asked["tool_name"], "tool_name is a name")
    need(asked.get("runner", "service") == "service", "runner is service")
    need(isinstance(required, dict), "required_guarantees is an object")
    need(all(isinstance(value, bool) for value in required.values()), "a guarantee is true or false")
    return asked["tool_name"], {name for name, value in required.items() if value}


def end(runner):
    """Ends a runner and what it started: by itself, or else by force."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(runner.pid, how)
            runner.wait(GRACE_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def run(request, timeout_s):
    """Status and body of the reply to a call whose runner gets this request."""
    runner = subprocess.Popen(
        [sys.executable, RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        reply, _ = runner.communicate(request, timeout_s)
    except subprocess.TimeoutExpired:
        end(runner)
        runner.stdin.close()
        runner.stdout.close()
        return 504, failure(type="Timeout", message="the tool took too long").encode("utf-8")
    if not reply:
        return 200, failure(type="ToolExit", message="the tool ended its process").encode("utf-8")
    return 200, reply


class Service(Handler):
    server_version = "python-tool"
    body_bytes_max = REQUEST_BYTES_MAX

    def answer(self, body):
        try:
            asked = strict_json.loads(body)
            need(isinstance(asked, dict), "a request is an object")
            answered = self.handshake if self.path == HANDSHAKE else self.call
            status, body = answered(asked)
        except ValueError as error:
            status, body = 400, failure(type="BadRequest", message=str(error)).encode("utf-8")
        self.reply(status, body)

    def call(self, call):
        timeout_s = timeout_of(call)
        request = {name: call[name] for name in SHARED if name in call}
        request["tool"] = name = call.get("tool_name")
        with self.server.lock:
            wanted = self.server.wanted.get(name, ()) if is_text(name) else ()
        if wanted:
            request["sandbox"] = True
            request["capability_context"] = {"guarantees": {name: True for name in sorted(wanted)}}
        text = strict_json.dumps(request).encode("utf-8")
        # What the runner would refuse is refused here.
        call_of(text)
        return run(text, timeout_s)

    def handshake(self, asked):
        tool, required = handshake_of(asked)
        known = required & FORBIDDEN.keys()
        if known:
            with self.server.lock:
                self.server.wanted.setdefault(tool, set()).update(known)
        said = {
            "ok": True,
            "enforcement": "partial" if required else "enforced",
            "supported_guarantees": {name: True for name in sorted(FORBIDDEN)},
            "service_version": "1",
        }
        return 200, strict_json.dumps(said).encode("utf-8")


def main():
    server = Server(int(sys.argv[1]), Service)
    # Guarantees that were asked for, by tool.
    server.wanted, server.lock = {}, threading.Lock()
    server.serve_forever()


if __name__ == "__main__":
    main()
