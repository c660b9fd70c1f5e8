"""PyPI jsonrpcserver on lines: `dispatch` gets each line, and what it gives back is written. Only glue."""

import logging
import sys

from jsonrpcserver import Success, dispatch, method

count = 0


@method(name="peerproof.echo")
def echo(*args, **kwargs):
    return Success(kwargs or list(args))


@method(name="peerproof.fail")
def fail():
    raise RuntimeError("this method always fails")


@method(name="peerproof.named")
def difference(minuend, subtrahend):
    return Success(minuend - subtrahend)


@method(name="peerproof.counter")
def counter():
    global count
    count += 1
    return Success({"count": count})


logging.disable()
for line in sys.stdin.buffer:
    response = dispatch(line.rstrip(b"\n").decode("utf-8", "replace"))
    if response:
        sys.stdout.buffer.write(response.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
