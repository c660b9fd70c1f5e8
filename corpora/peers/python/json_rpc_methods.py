"""The methods of a planner and an executor, as `json_rpc_server` and `json_rpc_http_server` answer them.

A method takes the params of its request and returns its result; it raises InvalidParams where the params are not what
it takes, and whatever else where it fails.
"""

import time

MESSAGE_BYTES_MAX = 1_048_576
TIMEOUT_DEFAULT_MS = 30_000
TIMEOUT_MAX_MS = 600_000
PLAN_TASKS_MAX = 100
CHUNK_CHARS = 16


class InvalidParams(Exception):
    """The params are not what the method takes."""


def no_params(params):
    if params not in (None, [], {}):
        raise InvalidParams


def named(params):
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise InvalidParams("params have to be given by name")
    return params


def member(params, name, kind, required=False):
    """Returns a member that is of `kind`, or None where it is absent or null."""
    value = params.get(name)
    if value is None:
        if required:
            raise InvalidParams(f"{name} is missing")
        return None
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise InvalidParams(f"{name} has a wrong type")
    return value


def one_of(params, name, known):
    value = member(params, name, str, required=True)
    if value not in known:
        raise InvalidParams(f"{name} is none of {', '.join(known)}")
    return value


def amount(params, name):
    value = member(named(params), name, int, required=True)
    if value < 0:
        raise InvalidParams(f"{name} is negative")
    return value


def timeout_ms(params):
    """Returns what a request may take, whatever its method."""
    options = params.get("options") if isinstance(params, dict) else None
    wish = options.get("timeout_ms") if isinstance(options, dict) else None
    if wish is None:
        return TIMEOUT_DEFAULT_MS
    if not isinstance(wish, int) or isinstance(wish, bool) or not 1 <= wish <= TIMEOUT_MAX_MS:
        raise InvalidParams(f"timeout_ms is no integer from 1 to {TIMEOUT_MAX_MS}")
    return wish


class Methods:
    """What can be called, by name."""

    def __init__(self):
        self.count = 0
        self.context = {"file": {}, "dependency": {}, "state": {}}
        self.table = {
            "peerproof.echo": self.echo,
            "peerproof.fail": self.fail,
            "peerproof.named": self.difference,
            "peerproof.counter": self.counter,
            "peerproof.sleep": self.sleep,
            "peerproof.blob": self.blob,
            "execute_task": self.execute_task,
            "create_plan": self.create_plan,
            "validate_code": self.validate_code,
            "update_context": self.update_context,
        }
        self.waiting = {"peerproof.sleep"}

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

    def sleep(self, params):
        ms = amount(params, "ms")
        time.sleep(ms / 1_000)
        return {"slept_ms": ms}

    def blob(self, params):
        size = amount(params, "bytes")
        # More cannot be sent, and need not be made.
        return {"data": "x" * min(size, MESSAGE_BYTES_MAX + 1)}

    def is_streamed(self, method, params):
        """Whether a request wants to hear on the way what there is."""
        options = params.get("options") if method == "execute_task" and isinstance(params, dict) else None
        return isinstance(options, dict) and options.get("stream") is True

    def execute_task(self, params):
        parts = self.execute_in_parts(params)
        while True:
            try:
                next(parts)
            except StopIteration as end:
                return end.value

    def execute_in_parts(self, params):
        """Yields the code that a task comes to, piece by piece, and returns its result."""
        params = named(params)
        task_type = one_of(params, "task_type", ("code_generation", "refactoring", "analysis", "testing"))
        prompt = member(params, "prompt", str, required=True)
        context = member(params, "context", dict) or {}
        files = member(context, "files", list) or []
        options = member(params, "options", dict) or {}
        language = member(options, "language", str) or "text"
        code = f"# {task_type} in {language}: {prompt[:200]}"
        for start in range(0, len(code), CHUNK_CHARS):
            yield code[start : start + CHUNK_CHARS]
        return {
            "status": "success",
            "output": {
                "code": code,
                "explanation": f"by rule, beside {len(files)} files",
                "files_modified": [],
                "files_created": [],
            },
            "metadata": {"execution_time_ms": 0, "tokens_used": len(prompt.split()), "model": "none"},
        }

    def create_plan(self, params):
        params = named(params)
        request = member(params, "user_request", str, required=True)
        state = member(params, "current_state", dict) or {}
        done = member(state, "completed_tasks", list) or []
        constraints = member(params, "constraints", dict) or {}
        most = member(constraints, "max_tasks", int)
        if most is not None and most < 1:
            raise InvalidParams("max_tasks is below 1")
        steps = [step.strip() for step in request.replace(";", ".").split(".") if step.strip()]
        steps = [step for step in steps if step not in done][: min(most or 10, PLAN_TASKS_MAX)]
        tasks = [
            {
                "id": f"task_{number}",
                "type": "code_generation",
                "description": step[:200],
                "dependencies": [f"task_{number - 1}"] if number > 1 else [],
                "priority": number,
            }
            for number, step in enumerate(steps, 1)
        ]
        plan = {"tasks": tasks, "estimated_time_seconds": 60 * len(tasks), "explanation": "one task a sentence"}
        return {"plan": plan}

    def validate_code(self, params):
        params = named(params)
        code = member(params, "code", str, required=True)
        member(params, "language", str, required=True)
        member(params, "rules", list)
        return {"valid": all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))}

    def update_context(self, params):
        params = named(params)
        action = one_of(params, "action", ("add", "remove", "modify"))
        section = self.context[one_of(params, "context_type", tuple(self.context))]
        data = member(params, "data", dict, required=True)
        for name, value in data.items():
            if action == "remove":
                section.pop(name, None)
            else:
                section[name] = value
        return {"total": len(section)}
