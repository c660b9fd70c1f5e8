"""An MCP server over stdio without any SDK: the standard library of Python alone."""

import json
import sys
import threading
import time

REVISIONS = ["2025-11-25", "2025-06-18", "2024-11-05"]
STRING, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 60_000}
READ_ONLY = {"readOnlyHint": True}
TOOLS = [
    {"name": "echo", "description": "Gives the text back.", "annotations": READ_ONLY,
     "inputSchema": {"type": "object", "properties": {"text": STRING}, "required": ["text"]}},
    {"name": "wait", "description": "Waits, then gives the text back.", "annotations": READ_ONLY,
     "inputSchema": {"type": "object", "properties": {"ms": NUMBER, "text": STRING}, "required": ["ms"]}},
]
ids, running, writing = (str, int), {}, threading.Lock()


class Refused(Exception):
    """A request refused with a code and a message."""


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def write(message):
    with writing:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()


def is_a(value, kind):
    return isinstance(value, kind) and not isinstance(value, bool)


def call(params, cancelled):
    name, given = params.get("name"), params.get("arguments")
    given = {} if given is None else given
    if name not in ("echo", "wait") or not isinstance(given, dict):
        raise Refused(-32602, f"unknown tool {name!r}, or arguments that are no object")
    text, ms = given.get("text", "" if name == "wait" else None), given.get("ms", 0 if name == "echo" else None)
    if not is_a(text, str) or name == "wait" and not (is_a(ms, int) and 0 <= ms <= 60_000):
        return {"content": [{"type": "text", "text": "arguments that break the input schema"}], "isError": True}
    if name == "wait" and cancelled.wait(ms / 1000):
        return None
    return {"content": [{"type": "text", "text": text}]}


def initialize(params):
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise Refused(-32602, "protocolVersion is missing")
    return {"protocolVersion": asked if asked in REVISIONS else REVISIONS[0], "capabilities": {"tools": {}},
            "serverInfo": {"name": "no-sdk", "version": "1.0.0"}}


def listing(params):
    if params.get("cursor") is not None:
        raise Refused(-32602, "unknown cursor")
    return {"tools": TOOLS}


def answer(id, method, params, cancelled):
    methods = {"initialize": initialize, "ping": lambda _: {}, "tools/list": listing,
               "tools/call": lambda given: call(given, cancelled)}
    try:
        if method not in methods:
            raise Refused(-32601, f"unknown method {method}")
        if not isinstance(params, dict):
            raise Refused(-32602, "params is no object")
        result = methods[method](params)
        if result is not None and not cancelled.is_set():
            write({"id": id, "result": result})
    except Refused as refused:
        write({"id": id, "error": {"code": refused.args[0], "message": refused.args[1]}})
    finally:
        running.pop((type(id), id), None)


def take(message):
    id = message.get("id") if isinstance(message, dict) else None
    method = message.get("method") if isinstance(message, dict) else None
    if not is_a(id, ids):
        id = None
    if isinstance(message, dict) and method is None and ("result" in message or "error" in message):
        return  # A response: this server asks nothing.
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(method, str) \
            or "id" in message and id is None:
        write({"id": id, "error": {"code": -32600, "message": "not a request"}})
    elif "id" in message:
        cancelled = running[type(id), id] = threading.Event()
        given = (id, method, message.get("params", {}), cancelled)
        threading.Thread(target=answer, args=given, daemon=True).start() if method == "tools/call" else answer(*given)
    elif method == "notifications/cancelled" and isinstance(message.get("params"), dict):
        id = message["params"].get("requestId")
        if is_a(id, ids) and (type(id), id) in running:
            running[type(id), id].set()


for line in sys.stdin.buffer:
    try:
        take(json.loads(line.decode(), parse_constant=no_constant))
    except (ValueError, RecursionError):
        write({"id": None, "error": {"code": -32700, "message": "not JSON"}})
for _ in range(20):  # Answers under way have two seconds.
    if running:
        time.sleep(0.1)
