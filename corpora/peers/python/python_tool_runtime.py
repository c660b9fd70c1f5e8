#!/usr/bin/env python3
"""A runtime of Python tools: makes the calls of a scenario, one after the other.

    python_tool_runtime.py SCENARIO RESULTS

For each call it starts a local runner or a container, or POSTs to a service, and appends one line to RESULTS: how the call
ended, with its trace. Guarantees of a service are asked for by a handshake first.
"""

import http.client
import re
import subprocess
import sys
import threading
import time
import urllib.parse

import strict_json
from process_output import Output
from process_tree import adopt_orphans, kill_tree

TIMEOUT_MS = 10_000
REPLY_BYTES_MAX = 10 * 1024 * 1024
BLOCK_BYTES = 64 * 1024
HANDSHAKE_PATH = "/capabilities/handshake"
ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class Late(Exception):
    """The time of a call is over."""


class TooLarge(Exception):
    """A reply is longer than what is taken."""


class Ended(Exception):
    """A call has ended with an outcome other than a result."""

    def __init__(self, outcome, message, error=None):
        super().__init__(message)
        self.told = {"outcome": outcome, "error": error or {"type": outcome, "message": message}}


def is_text(value):
    return isinstance(value, str)


def is_texts(value):
    return isinstance(value, list) and all(map(is_text, value))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def of(is_member):
    return lambda value: isinstance(value, dict) and all(map(is_member, value.values()))


def is_bool(value):
    return isinstance(value, bool)


NEEDED = {"local": {"command": is_texts}, "service": {"url": is_text}}
NEEDED["container"] = {"container_runtime": is_text, "image": is_text, "command": is_texts}
ALWAYS = {
    "tool": lambda value: is_text(value) and value != "",
    "entry": lambda value: is_text(value) and ENTRY.fullmatch(value),
    "payload": lambda value: isinstance(value, dict),
}
OPTIONAL = {
    "timeout_ms": is_number,
    "timeout_seconds": is_number,
    "trace_id": is_text,
    "resolved_source": is_text,
    "sandbox": is_bool,
    "unsafe_override": is_bool,
    "guarantees": of(is_bool),
    "pack": of(is_text),
    "after": is_texts,
}


def check(call):
    """Raises Ended where a call is wrong by itself."""
    needed = NEEDED.get(call.get("runner"))
    if needed is None:
        raise Ended("bad_call", "no such runner")
    for name, is_right in {**needed, **ALWAYS}.items():
        if not is_right(call.get(name)):
            raise Ended("bad_call", f"{name} is missing or wrong")
    for name, is_right in OPTIONAL.items():
        if name in call and not is_right(call[name]):
            raise Ended("bad_call", f"{name} is wrong")
    if "timeout_ms" in call and "timeout_seconds" in call:
        raise Ended("bad_call", "two times are given")


def time_ms(call):
    return call.get("timeout_ms", round(call.get("timeout_seconds", TIMEOUT_MS / 1000) * 1000))


def feed(pipe, request):
    """Writes a request and closes the pipe; a program need not read all of it."""
    for action in (lambda: pipe.write(request), pipe.close):
        try:
            action()
        except OSError:
            pass


def run(argv, request, deadline, folder):
    """Starts a program with a request on its standard input; returns its exit status and what it wrote."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(argv, start_new_session=True, bufsize=0, cwd=folder, **pipes)
    writer = threading.Thread(target=feed, args=(process.stdin, request), daemon=True)
    try:
        writer.start()
        output = Output(process, REPLY_BYTES_MAX, Late(), TooLarge())
        output.read_until(deadline)
    finally:
        kill_tree(process)
        writer.join(1)
    return process.returncode, bytes(output.stdout)


def by_program(argv, request, deadline, folder, is_local):
    try:
        status, reply = run(argv, request, deadline, folder)
    except OSError as error:
        raise Ended("unavailable", str(error) or "not started") from error
    if status == 0:
        return judged(reply, is_local)
    try:
        judged(reply, is_local)
    except Ended as ended:
        if ended.told["outcome"] == "tool_error":
            raise
    raise Ended("crash", f"it ended with {status}")


def cut(sock):
    try:
        sock.shutdown(2)
    except OSError:
        pass


def post(url, path, request, deadline):
    """POSTs a text; returns status and body."""
    left_s = max(deadline - time.monotonic(), 0.001)
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=left_s)
    reply, timer = b"", None
    # Whatever trickles, the connection ends in time.
    try:
        connection.connect()
        timer = threading.Timer(max(deadline - time.monotonic(), 0), cut, [connection.sock])
        timer.daemon = True
        timer.start()
        connection.request("POST", path, request, {"Content-Type": "application/json"})
        response = connection.getresponse()
        while block := response.read1(BLOCK_BYTES):
            reply += block
            if len(reply) > REPLY_BYTES_MAX:
                raise TooLarge
        if response.length:
            raise ConnectionError("the body is cut short")
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= deadline:
            raise Late from error
        raise Ended("unavailable", str(error) or "no connection") from error
    finally:
        if timer:
            timer.cancel()
        connection.close()
    if time.monotonic() >= deadline:
        raise Late
    return response.status, reply


def judged(text, is_local):
    """The result in a reply; raises Ended where there is none."""
    try:
        reply = strict_json.loads(text)
    except ValueError as error:
        raise Ended("invalid", str(error) or "no JSON") from error
    if not isinstance(reply, dict):
        raise Ended("invalid", "no object")
    version = reply.get("protocol_version", None if is_local else 1)
    if isinstance(version, bool) or version != 1:
        raise Ended("invalid", "protocol_version is not 1")
    error = reply.get("error")
    if reply.get("ok") is True and "result" in reply and error is None:
        return reply["result"]
    if reply.get("ok") is False and reply.get("result") is None and isinstance(error, dict):
        reason = error.get("reason_code")
        texts = is_text(error.get("type")) and is_text(error.get("message")) and error["type"]
        if texts and (reason is None or is_text(reason)):
            raise Ended("tool_error", "it failed", error)
    raise Ended("invalid", "neither a result nor an error")


def encoded(value):
    return strict_json.dumps(value).encode("utf-8") + b"\n"


def assure(call, required, url, deadline, trace):
    """Asks a service for guarantees; raises Ended where they are not assured."""
    members = {"protocol_version": 1, "tool_name": call["tool"], "runner": "service"}
    request = encoded({**members, "required_guarantees": dict.fromkeys(required, True)})
    trace["service_handshake"] = {"answered": False}
    try:
        status, text = post(url, HANDSHAKE_PATH, request, deadline)
    except TooLarge:
        raise Ended("blocked", "the handshake has no proper reply") from None
    try:
        reply = strict_json.loads(text)
    except ValueError:
        reply = None
    reply = reply if isinstance(reply, dict) else {}
    trace["service_handshake"] = {"answered": True, "status": status, "reply": reply}
    supported = reply.get("supported_guarantees")
    supported = supported if isinstance(supported, dict) else {}
    is_assured = status == 200 and reply.get("ok") is True and reply.get("enforcement") == "enforced"
    is_assured = is_assured and all(supported.get(name) is True for name in required)
    word = reply.get("enforcement")
    trace["enforcement_level"] = word if is_assured or word in ("partial", "none") else "none"
    if not is_assured and call.get("unsafe_override"):
        trace["unsafe_override"] = True
    elif not is_assured:
        raise Ended("blocked", "the guarantees are not assured")


def make(call, project, deadline, trace):
    """Makes a call; returns its result, or raises Ended, Late or TooLarge."""
    shared = {"protocol_version": 1, "entry": call["entry"], "payload": call["payload"]}
    shared.update({name: call[name] for name in ("trace_id",) if name in call})
    required = [name for name, value in call.get("guarantees", {}).items() if value]
    if call["runner"] == "local":
        if required and not call.get("sandbox") and not call.get("unsafe_override"):
            raise Ended("blocked", "guarantees need a sandbox")
        request = {**shared, "tool": call["tool"]}
        if "sandbox" in call:
            request["sandbox"] = trace["sandbox"] = call["sandbox"]
        if "guarantees" in call:
            request["capability_context"] = {"guarantees": call["guarantees"]}
        return by_program(call["command"], encoded(request), deadline, project.get("app_root"), True)
    request = {**shared, "tool_name": call["tool"], "kind": "python", "project": project}
    request = encoded({**request, "timeout_ms": time_ms(call)})
    if call["runner"] == "container":
        if required and not call.get("unsafe_override"):
            raise Ended("blocked", "a container gives no guarantees")
        argv = [call["container_runtime"], call["image"], *call["command"]]
        return by_program(argv, request, deadline, project.get("app_root"), False)
    url = urllib.parse.urlsplit(call["url"])
    if required:
        assure(call, required, url, deadline, trace)
    path = (url.path or "/") + ("?" + url.query if url.query else "")
    status, reply = post(url, path, request, deadline)
    if status == 200:
        return judged(reply, False)
    try:
        judged(reply, False)
    except Ended as ended:
        if ended.told["outcome"] == "tool_error":
            raise
    raise Ended("unavailable", f"status {status}")


def traced(call):
    """What the trace of a call says whatever comes of it."""
    trace = {"runner": call["runner"], "resolved_source": call.get("resolved_source", "binding")}
    trace.update({"timeout_ms": time_ms(call), "protocol_version": 1, **call.get("pack", {})})
    if call["runner"] == "local":
        python = {"python_env": "system", "python_path": sys.executable or "python3", "deps_source": "none"}
        trace.update(python)
        trace.update({name: call[name] for name in ("sandbox",) if name in call})
    elif call["runner"] == "container":
        trace.update({name: call[name] for name in ("container_runtime", "image", "command")})
    else:
        url = urllib.parse.urlsplit(call["url"])
        trace["service_url"] = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
    return trace


def line_of(call, project, is_reached):
    """How a call ended, as a line of the results."""
    line = {"ref": call["ref"]}
    begun = time.monotonic()
    try:
        if not is_reached:
            raise Ended("bad_call", "after dangles or runs in a circle")
        check(call)
        trace = line["trace"] = traced(call)
        try:
            result = make(call, project, begun + time_ms(call) / 1000, trace)
            line.update({"outcome": "result", "result": result})
        except Late:
            raise Ended("timeout", "its time is over") from None
        except TooLarge:
            raise Ended("invalid", "the reply is too long") from None
    except Ended as ended:
        line.update(ended.told)
    if "trace" in line:
        line["trace"]["duration_ms"] = round((time.monotonic() - begun) * 1000)
    return line


def ordered(calls):
    """The calls, each behind those that it comes after, with whether that can be; the others are told at once."""
    names = {call["ref"]: call for call in calls}

    def reaches(call):
        pending, seen = list(call.get("after", [])), set()
        if any(name not in names for name in pending):
            return False
        while pending:
            name = pending.pop()
            if name == call["ref"]:
                return False
            if name not in seen:
                seen.add(name)
                pending += [other for other in names[name].get("after", []) if other in names]
        return True

    left, done = [], set()
    for call in calls:
        if "after" in call and not (is_texts(call["after"]) and reaches(call)):
            done.add(call["ref"])
            yield call, False
        else:
            left.append(call)
    while left:
        due = next((call for call in left if done.issuperset(call.get("after", []))), left[0])
        left.remove(due)
        done.add(due["ref"])
        yield due, True


def main(arguments):
    if len(arguments) != 2:
        print("usage: python_tool_runtime.py SCENARIO RESULTS", file=sys.stderr)
        return 2
    adopt_orphans()
    with open(arguments[0], "rb") as file:
        scenario = strict_json.loads(file.read())
    with open(arguments[1], "ab") as results:
        for call, is_reached in ordered(scenario["calls"]):
            results.write(encoded(line_of(call, scenario.get("project", {}), is_reached)))
            results.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
