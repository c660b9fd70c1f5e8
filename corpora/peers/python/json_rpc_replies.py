"""What a JSON-RPC server answers: results and errors, and lines for which there is room."""

import strict_json
from json_rpc_methods import MESSAGE_BYTES_MAX

PARSE_ERROR = (-32700, "Parse error", "PARSE_ERROR")
INVALID_REQUEST = (-32600, "Invalid Request", "INVALID_REQUEST")
MESSAGE_TOO_LARGE = (-32600, "Invalid Request", "MESSAGE_TOO_LARGE")
METHOD_NOT_FOUND = (-32601, "Method not found", "METHOD_NOT_FOUND")
INVALID_PARAMS = (-32602, "Invalid params", "INVALID_PARAMS")
RESULT_TOO_LARGE = (-32603, "Internal error", "RESULT_TOO_LARGE")
TIMEOUT = (-32000, "Execution timeout", "TIMEOUT")
EXECUTION_FAILED = (-32000, "Execution failed", "EXECUTION_ERROR")
UNAUTHORIZED = (-32003, "Authentication failed", "AUTH")
RATE_LIMITED = (-32002, "Rate limit exceeded", "RATE_LIMIT")


def success(result, id):
    return {"jsonrpc": "2.0", "result": result, "id": id}


def failure(kind, id=None, details=None, **data):
    code, message, name = kind
    data["type"] = name
    if details:
        data["details"] = details
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message, "data": data}, "id": id}


def text_of(response):
    return strict_json.dumps(response).encode("utf-8")


def fitted(response):
    """Returns the line for a response, or for several; results for which there is no room give way."""
    line = text_of(response)
    if len(line) <= MESSAGE_BYTES_MAX:
        return line
    if isinstance(response, dict):
        line = text_of(failure(RESULT_TOO_LARGE, response["id"]))
        # An id that leaves no room is not echoed.
        return line if len(line) <= MESSAGE_BYTES_MAX else text_of(failure(RESULT_TOO_LARGE))
    sizes = [len(text_of(one)) for one in response]
    excess = len(line) - MESSAGE_BYTES_MAX
    for place in sorted(range(len(response)), key=lambda place: -sizes[place]):
        if excess <= 0:
            break
        response[place] = failure(RESULT_TOO_LARGE, response[place]["id"])
        excess -= sizes[place] - len(text_of(response[place]))
    return text_of(response)
