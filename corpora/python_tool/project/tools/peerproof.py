"""Tools whose results, and whose effects, a harness knows beforehand.

Each role takes its payload as the one positional argument or as keywords. Most calls are of a role in this module, and Python
compiles it for each of them: roles that reach out of their process are in `peerproof_effects`.
Nothing is imported here but what every interpreter has loaded already; what a role needs it imports itself.
"""

import os
import sys


class Own(Exception):
    """An exception of this module's own."""


class Ends(BaseException):
    """What no `except Exception` catches."""


def payload_of(given, named):
    return given[0] if given else named


def echo(*given, **named):
    return payload_of(given, named)


def any(*given, **named):
    return {"any": 1}


def value(*given, **named):
    kind = payload_of(given, named)["kind"]
    if kind == "cycle":
        cycle = {}
        cycle["cycle"] = cycle
        return cycle
    if kind == "deep64":
        # The reply is one of its levels.
        deep = 1
        for _ in range(63):
            deep = {"d": deep}
        return deep
    if kind == "date":
        import datetime

        return {"v": datetime.date(2024, 2, 29)}
    if kind == "decimal":
        import decimal

        return {"v": decimal.Decimal("1.5")}
    return {
        "nan": lambda: {"v": float("nan")},
        "inf": lambda: {"v": float("-inf")},
        "bytes": lambda: {"v": b"x"},
        "set": lambda: {"v": {1, 2}},
        "object": lambda: {"v": object()},
        "generator": lambda: {"v": (number for number in (1, 2))},
        "tuple": lambda: {"v": (1, 2)},
        "intkeys": lambda: {1: "a", 2: "b"},
        "boolkeys": lambda: {True: "a", None: "b"},
        "none": lambda: None,
        "list": lambda: [1, "a", None],
        "text": lambda: "a",
        "number": lambda: 7,
        "true": lambda: True,
        "bigint": lambda: {"v": 2**60 + 1},
        "ok_false": lambda: {"ok": False},
        "late_nan": lambda: {"a": "x" * 100000, "v": float("nan")},
        "late_bytes": lambda: {"a": "x" * 100000, "v": b"x"},
        "surrogate": lambda: {"v": "\ud800"},
        "text_é": lambda: {"v": "é€😀\u2028\x00"},
    }[kind]()


def fail(*given, **named):
    import builtins

    payload = payload_of(given, named)
    kind = Own if payload["type"] == "Own" else getattr(builtins, payload["type"])
    raise kind(payload["message"])


def sleep(*given, **named):
    import time

    payload = payload_of(given, named)
    time.sleep(payload["ms"] / 1000)
    if "touch" in payload:
        with open(payload["touch"], "w") as file:
            file.write("slept")
    return {"slept_ms": payload["ms"]}


def blob(*given, **named):
    return {"data": "x" * payload_of(given, named)["bytes"]}


def noise(*given, **named):
    payload = payload_of(given, named)
    route, text = payload["route"], payload["text"]
    if route == "print":
        print(text, flush=True)
    elif route == "buffered":
        sys.stdout.write(text)
    elif route == "dunder":
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
    elif route == "fd":
        os.write(1, text.encode())
    elif route == "child":
        os.system("printf %s " + text)
    elif route == "thread_late":
        import threading
        import time

        def late():
            while True:
                os.write(1, text.encode())
                time.sleep(0.01)

        threading.Thread(target=late, daemon=True).start()
        time.sleep(0.05)
    elif route == "atexit":
        import atexit

        atexit.register(os.write, 1, text.encode())
    elif route == "close":
        os.close(1)
    elif route == "stderr":
        sys.stderr.write(text)
    return {}


def quit(*given, **named):
    import signal

    payload = payload_of(given, named)
    how, code = payload["how"], payload["code"]
    if how == "sys":
        sys.exit(code)
    if how == "os":
        os._exit(code)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    raise Ends("the end")


def spawn(*given, **named):
    payload = payload_of(given, named)
    child = os.fork()
    if child:
        return {"pid": child}
    if not payload["hold"]:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        os.closerange(3, 256)
    os.execvp("sleep", ["sleep", str(payload["ms"] / 1000)])


def stdin(*given, **named):
    return {"read": sys.stdin.read()}


def by_effects(role):
    """The role of that name in `peerproof_effects`, for configurations that name this module."""

    def called(*given, **named):
        from tools import peerproof_effects

        return getattr(peerproof_effects, role)(*given, **named)

    return called


write, read, connect = by_effects("write"), by_effects("read"), by_effects("connect")
process, env_read, env_write = by_effects("process"), by_effects("env_read"), by_effects("env_write")
