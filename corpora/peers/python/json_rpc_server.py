"""A JSON-RPC 2.0 server on lines, after the specification alone; the Python standard library and nothing else.

One message or batch a line comes in on standard input, one response or array of responses a line goes out. Text that
is doubtful (two members with one name, a lone surrogate, a number beyond every double) is refused as a whole.
"""

import sys

import strict_json

PARSE_ERROR = (-32700, "Parse error")
INVALID_REQUEST = (-32600, "Invalid Request")
METHOD_NOT_FOUND = (-32601, "Method not found")
INVALID_PARAMS = (-32602, "Invalid params")
EXECUTION_FAILED = (-32000, "Execution failed")


class InvalidParams(Exception):
    """The params are not what the method takes."""


def no_params(params):
    if params not in (None, [], {}):
        raise InvalidParams


class Methods:
    """What can be called, by name."""

    def __init__(self):
        self.count = 0
        self.table = {
            "peerproof.echo": self.echo,
            "peerproof.fail": self.fail,
            "peerproof.named": self.difference,
            "peerproof.counter": self.counter,
        }

    def echo(self, params):
        return {} if params is None else params

    def fail(self, params):
        no_params(params)
        raise RuntimeError("this method always fails")

    def difference(self, params):
        if not isinstance(params, dict) or set(params) != {"minuend", "subtrahend"}:
            raise InvalidParams
        minuend, subtrahend = params["minuend"], params["subtrahend"]
        if not all(type(number) is int for number in (minuend, subtrahend)):
            raise InvalidParams
        return minuend - subtrahend

    def counter(self, params):
        no_params(params)
        self.count += 1
        return {"count": self.count}


def success(result, id):
    return {"jsonrpc": "2.0", "result": result, "id": id}


def failure(kind, id=None, details=None):
    code, message = kind
    error = {"code": code, "message": message}
    if details:
        error["data"] = {"details": details}
    return {"jsonrpc": "2.0", "error": error, "id": id}


def answer(message, methods):
    """Returns the response to one message, or None where there is none."""
    if not isinstance(message, dict):
        return failure(INVALID_REQUEST)
    is_notification = "id" not in message
    id = message.get("id")
    if isinstance(id, (bool, list, dict)):
        return failure(INVALID_REQUEST)
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return failure(INVALID_REQUEST, id)
    params = message.get("params")
    if not isinstance(params, (list, dict)) and params is not None:
        return failure(INVALID_REQUEST, id)
    method = methods.table.get(message["method"])
    if method is None:
        response = failure(METHOD_NOT_FOUND, id)
    else:
        try:
            response = success(method(params), id)
        except InvalidParams:
            response = failure(INVALID_PARAMS, id)
        except Exception as error:  # noqa: BLE001 - whatever a method raises is its failure, never ours
            response = failure(EXECUTION_FAILED, id, str(error))
    return None if is_notification else response


def answer_line(line, methods):
    """Returns what is written for one line, a response or a list of them, or None."""
    try:
        message = strict_json.loads(line)
    except strict_json.MalformedJson as error:
        return failure(PARSE_ERROR, None, str(error))
    if not isinstance(message, list):
        return answer(message, methods)
    if not message:
        return failure(INVALID_REQUEST)
    responses = [answer(element, methods) for element in message]
    return [response for response in responses if response is not None] or None


def main():
    methods = Methods()
    for line in sys.stdin.buffer:
        if not line.strip(b" \t\r\n"):
            continue
        response = answer_line(line.rstrip(b"\n"), methods)
        if response is not None:
            sys.stdout.buffer.write(strict_json.dumps(response).encode("utf-8") + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
