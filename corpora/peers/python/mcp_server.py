#!/usr/bin/env python3
"""An MCP server over standard streams: tools, resources, prompts, logging and completion, without libraries."""

import base64
import json
import sys
import threading
import time

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
PARSE, REQUEST, METHOD, PARAMS, RESOURCE = -32700, -32600, -32601, -32602, -32002
READS = {"readOnlyHint": True}


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TOOLS = [
    {"name": "echo", "annotations": READS, "inputSchema": schema(["text"], text={"type": "string"})},
    {
        "name": "add",
        "annotations": READS,
        "inputSchema": schema(["a", "b"], a={"type": "integer"}, b={"type": "integer"}),
        "outputSchema": schema(["sum"], sum={"type": "integer"}),
    },
    {
        "name": "sleep",
        "annotations": READS,
        "inputSchema": schema(["ms"], ms={"type": "integer"}, text={"type": "string"}),
    },
    {"name": "log", "annotations": READS, "inputSchema": {"type": "object"}},
]
RESOURCES = [{"uri": "memory://text", "name": "text"}, {"uri": "memory://bytes", "name": "bytes"}]
TEMPLATES = [{"uriTemplate": "memory://{name}", "name": "any"}]
PROMPTS = [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]
TYPES = {"string": str, "integer": int}


class Refused(Exception):
    """An error of the protocol: code and message."""


class Server:
    """One connection."""

    def __init__(self):
        self.lock = threading.Lock()
        self.level = "debug"
        self.is_open = False
        self.cancelled = set()

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n"
        with self.lock:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()

    def error(self, ident, code, message):
        self.send({"id": ident, "error": {"code": code, "message": message}})

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def line(self, line):
        try:
            message = json.loads(line.decode(), parse_constant=self.no_constant)
        except (ValueError, RecursionError):
            return self.error(None, PARSE, "no JSON")
        if not isinstance(message, dict):
            return self.error(None, REQUEST, "no object")
        ident, method = message.get("id"), message.get("method")
        if method is None and ("result" in message or "error" in message):
            return None
        has_id = isinstance(ident, (str, int, float)) and not isinstance(ident, bool)
        if "id" in message and not has_id:
            return self.error(None, REQUEST, "the id is no string and no number")
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            return self.error(ident, REQUEST, "no request")
        params = message.get("params", {})
        if not has_id:
            return self.notified(method, params)
        if not isinstance(params, dict):
            return self.error(ident, PARAMS, "params are no object")
        try:
            result = self.request(ident, method, params)
        except Refused as refused:
            return self.error(ident, *refused.args)
        if result is not None:
            self.send({"id": ident, "result": result})
        return None

    @staticmethod
    def no_constant(name):
        raise ValueError(name)

    def notified(self, method, params):
        if method == "notifications/cancelled" and isinstance(params, dict):
            ident = params.get("requestId")
            if isinstance(ident, (str, int)):
                self.cancelled.add(ident)

    def request(self, ident, method, params):
        if method == "ping":
            return {}
        if method == "initialize":
            return self.initialize(params)
        if not self.is_open:
            raise Refused(REQUEST, "the connection is not open")
        if method == "tools/call":
            return self.call(ident, params)
        name = method.replace("/", "_").lower()
        answer = getattr(self, "on_" + name, None)
        if answer is None:
            raise Refused(METHOD, "unknown method")
        return answer(params)

    def initialize(self, params):
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise Refused(PARAMS, "protocolVersion is missing")
        self.is_open = True
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {
                "tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}, "completions": {},
            },
            "serverInfo": {"name": "python-mcp-server", "version": "1"},
        }

    @staticmethod
    def page(params, member, items):
        if "cursor" in params:
            raise Refused(PARAMS, "unknown cursor")
        return {member: items}

    def on_tools_list(self, params):
        return self.page(params, "tools", TOOLS)

    def on_resources_list(self, params):
        return self.page(params, "resources", RESOURCES)

    def on_resources_templates_list(self, params):
        return self.page(params, "resourceTemplates", TEMPLATES)

    def on_prompts_list(self, params):
        return self.page(params, "prompts", PROMPTS)

    @staticmethod
    def uri(params):
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise Refused(PARAMS, "uri is missing")
        if uri not in [resource["uri"] for resource in RESOURCES]:
            raise Refused(RESOURCE, "unknown resource")
        return uri

    def on_resources_read(self, params):
        uri = self.uri(params)
        if uri.endswith("text"):
            return {"contents": [{"uri": uri, "text": "text"}]}
        return {"contents": [{"uri": uri, "blob": base64.b64encode(bytes(range(8))).decode()}]}

    def on_resources_subscribe(self, params):
        self.uri(params)
        return {}

    on_resources_unsubscribe = on_resources_subscribe

    @staticmethod
    def on_prompts_get(params):
        if params.get("name") != "greet":
            raise Refused(PARAMS, "unknown prompt")
        who = (params.get("arguments") or {}).get("who")
        if not isinstance(who, str):
            raise Refused(PARAMS, "who is missing")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Greet {who}."}}]}

    def on_logging_setlevel(self, params):
        if params.get("level") not in LEVELS:
            raise Refused(PARAMS, "unknown level")
        self.level = params["level"]
        return {}

    @staticmethod
    def on_completion_complete(params):
        ref = params.get("ref")
        if not isinstance(ref, dict) or ref.get("type") == "ref/prompt" and ref.get("name") != "greet":
            raise Refused(PARAMS, "unknown reference")
        return {"completion": {"values": ["Ada", "Grace"], "total": 2, "hasMore": False}}

    def call(self, ident, params):
        name, given = params.get("name"), params.get("arguments")
        given = {} if given is None else given
        tool = next((tool for tool in TOOLS if tool["name"] == name), None)
        if tool is None or not isinstance(given, dict):
            raise Refused(PARAMS, "unknown tool, or arguments that are no object")
        fault = self.fault(tool["inputSchema"], given)
        if fault:
            return {**said(fault), "isError": True}
        if name == "echo":
            return said(given["text"])
        if name == "add":
            total = {"sum": given["a"] + given["b"]}
            return {**said(json.dumps(total)), "structuredContent": total}
        if name == "log":
            for level in LEVELS:
                if LEVELS.index(level) >= LEVELS.index(self.level):
                    self.notify("notifications/message", {"level": level, "data": "logged"})
            return said("logged")
        token = (params.get("_meta") or {}).get("progressToken")
        threading.Thread(target=self.sleep, args=(ident, given, token), daemon=True).start()
        return None

    @staticmethod
    def fault(wanted, given):
        for name in wanted.get("required", []):
            if name not in given:
                return f"{name} is missing"
        for name, member in wanted.get("properties", {}).items():
            value = given.get(name)
            if name in given and (not isinstance(value, TYPES[member["type"]]) or isinstance(value, bool)):
                return f"{name} is of another type"
        return None

    def sleep(self, ident, given, token):
        end = time.monotonic() + given["ms"] / 1000
        while time.monotonic() < end:
            if ident in self.cancelled:
                return
            time.sleep(0.01)
        if token is not None:
            self.notify("notifications/progress", {"progressToken": token, "progress": 1})
        self.send({"id": ident, "result": said(given.get("text", "slept"))})


def said(text):
    return {"content": [{"type": "text", "text": text}]}


def main():
    server = Server()
    for line in iter(sys.stdin.buffer.readline, b""):
        if line.strip():
            server.line(line)


if __name__ == "__main__":
    main()
