"""A JSON-RPC 2.0 server over stdin and stdout with one method, `echo`, for `dist/try`.

With the argument `--wrong` it answers unknown methods with the error code of wrong params.
"""

import json
import sys

UNKNOWN = -32602 if "--wrong" in sys.argv else -32601


def finite(word):
    number = float(word)
    if number - number != 0:
        raise ValueError(word)
    return number


def error(code, id=None):
    return {"jsonrpc": "2.0", "error": {"code": code, "message": "refused"}, "id": id}


def respond(message):
    if not isinstance(message, dict):
        return error(-32600)
    id, method, params = message.get("id"), message.get("method"), message.get("params", [])
    if isinstance(id, (bool, list, dict)):
        return error(-32600)
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or not isinstance(params, (list, dict)):
        return error(-32600, id)
    reply = {"jsonrpc": "2.0", "result": params, "id": id} if method == "echo" else error(UNKNOWN, id)
    return reply if "id" in message else None


for line in sys.stdin.buffer:
    try:
        message = json.loads(line.decode(), parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError):
        reply = error(-32700)
    else:
        batch = isinstance(message, list) and message
        reply = [r for r in map(respond, message) if r] if batch else respond(message)
    if reply:
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
