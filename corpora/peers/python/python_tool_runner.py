#!/usr/bin/env python3
"""A local runner of Python tools: reads one call from standard input, runs the tool in a fork, writes one reply.

    python_tool_runner.py

The tool is a module below the working directory. Guarantees are watched by an audit hook, which a tool that means to can
pass by (`ctypes` does): they are enforced in part, and the configuration says so.
"""

import importlib
import os
import re
import select
import signal
import sys
import time

import strict_json
from process_tree import adopt_orphans, kill_descendants

REQUEST_BYTES_MAX = 10 * 1024 * 1024
# Time that what a tool leaves running has to end by itself.
LINGER_S = 0.5
ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", re.ASCII)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FORBIDDEN = {
    "no_filesystem_write": ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
    "no_filesystem_read": ("os.listdir", "os.scandir"),
    "no_network": ("socket.connect", "socket.sendto", "socket.sendmsg"),
    "no_subprocess": ("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
    "no_env_read": (),
    "no_env_write": ("os.putenv", "os.unsetenv"),
}


class Refused(ValueError):
    """What was read is no call."""


class GuaranteeBlocked(Exception):
    """The tool may not do this."""


def need(is_right, sentence):
    if not is_right:
        raise Refused(sentence)


def is_text(value):
    return isinstance(value, str)


def call_of(data):
    """Entry, payload and guarantees in force; raises Refused or MalformedJson."""
    need(len(data) <= REQUEST_BYTES_MAX, "a request has at most 10 MB")
    call = strict_json.loads(data)
    need(isinstance(call, dict), "a request is an object")
    version = call.get("protocol_version")
    need(version == 1 and not isinstance(version, bool), "protocol_version is 1")
    need(is_text(call.get("tool")) and call["tool"], "tool is a name")
    need(is_text(call.get("entry")) and ENTRY.fullmatch(call["entry"]), "entry is module:function")
    need(isinstance(call.get("payload"), dict), "payload is an object")
    need(call.get("sandbox") is None or isinstance(call["sandbox"], bool), "sandbox is true or false")
    context = call.get("capability_context")
    need(context is None or isinstance(context, dict), "capability_context is an object")
    guarantees = (context or {}).get("guarantees")
    need(guarantees is None or isinstance(guarantees, dict), "guarantees is an object")
    guarantees = guarantees or {}
    need(all(isinstance(value, bool) for value in guarantees.values()), "a guarantee is true or false")
    # What nobody knows is not refused: a caller that needs it asks beforehand.
    return call["entry"], call["payload"], {name for name, value in guarantees.items() if value}


def watch(guarantees):
    events = {event: name for name in guarantees for event in FORBIDDEN.get(name, ())}
    library = tuple({sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)})

    def on_importing():
        return "importlib" in sys._getframe(2).f_code.co_filename

    def hook(event, args):
        if event == "open" and is_text(args[0]):
            path, writes = args[0], bool((args[2] or 0) & WRITES)
            if writes and "no_filesystem_write" in guarantees:
                raise GuaranteeBlocked("no_filesystem_write")
            is_own = path.endswith((".py", ".pyc")) or path.startswith(library)
            if not writes and "no_filesystem_read" in guarantees and not is_own:
                raise GuaranteeBlocked("no_filesystem_read")
        elif event in events and not (event in FORBIDDEN["no_filesystem_read"] and on_importing()):
            raise GuaranteeBlocked(events[event])

    if "no_env_read" in guarantees:
        os.environ.clear()
    if guarantees:
        sys.addaudithook(hook)


def chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def outcome_of(entry, payload, guarantees):
    """The reply to a call, as text."""
    watch(guarantees)
    module, function = entry.split(":")
    try:
        result = getattr(importlib.import_module(module), function)(payload)
        return strict_json.dumps({"ok": True, "protocol_version": 1, "result": result})
    except BaseException as error:
        said = {"type": type(error).__qualname__, "message": str(error)}
        if any(isinstance(link, GuaranteeBlocked) for link in chain(error)):
            said["reason_code"] = "guarantee_blocked"
        return failure(**said)


def failure(**error):
    return strict_json.dumps({"ok": False, "protocol_version": 1, "error": error})


def become_tool(call, channel):
    """Runs in the fork: never returns."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    sys.stdin = open(0, closefd=False)
    sys.path[0] = os.getcwd()
    me = os.getpid()
    text = outcome_of(*call)
    if os.getpid() != me:
        os._exit(0)
    data = text.encode("utf-8") + b"\n"
    while data:
        data = data[os.write(channel, data):]
    # The rest is what an interpreter does at its end: threads, atexit, buffers.
    sys.exit(0)


def reply_of(channel, child):
    """What the fork wrote, as far as that is whole, and how it ended."""
    parts, is_whole, status, since = [], False, None, None
    while True:
        ready, _, _ = select.select([channel], [], [], 0.02)
        if ready:
            part = os.read(channel, 1 << 20)
            parts.append(part)
            is_whole = is_whole or part.endswith(b"\n")
        if status is None:
            ended, how = os.waitpid(child, os.WNOHANG)
            status = how if ended else None
        if is_whole and since is None:
            since = time.monotonic()
        if status is not None and (is_whole or not ready or not part):
            return b"".join(parts) if is_whole else b"", status
        if since is not None and time.monotonic() - since > LINGER_S:
            return b"".join(parts), 0


def main():
    try:
        call = call_of(sys.stdin.buffer.read().strip(b" \t\r\n"))
    except ValueError as error:
        os.write(1, failure(type="BadRequest", message=str(error)).encode("utf-8") + b"\n")
        return 0
    # What the tool leaves behind is found although it stays in our process group, or leaves it.
    adopt_orphans()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        become_tool(call, theirs)
    os.close(theirs)

    def end(*_):
        kill_descendants()
        os._exit(143)

    signal.signal(signal.SIGTERM, end)
    reply, status = reply_of(ours, child)
    kill_descendants()
    if not reply:
        print(f"the tool ended its process: {status}", file=sys.stderr)
        return 1
    while reply:
        reply = reply[os.write(1, reply):]
    return 0


if __name__ == "__main__":
    sys.exit(main())
