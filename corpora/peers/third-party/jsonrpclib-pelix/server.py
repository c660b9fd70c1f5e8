"""PyPI jsonrpclib-pelix on lines: its dispatcher gets each line, and what it gives back is written. Only glue."""

import logging
import sys

from jsonrpclib.SimpleJSONRPCServer import SimpleJSONRPCDispatcher

count = 0


def echo(*args, **kwargs):
    return kwargs or list(args)


def fail():
    raise RuntimeError("this method always fails")


def difference(minuend, subtrahend):
    return minuend - subtrahend


def counter():
    global count
    count += 1
    return {"count": count}


logging.disable()
dispatcher = SimpleJSONRPCDispatcher()
for name, function in (("echo", echo), ("fail", fail), ("named", difference), ("counter", counter)):
    dispatcher.register_function(function, f"peerproof.{name}")
for line in sys.stdin.buffer:
    response = dispatcher._marshaled_dispatch(line.rstrip(b"\n").decode("utf-8", "replace"))
    if response:
        sys.stdout.buffer.write(response.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
