"""Measures the harness itself: what an interrupt takes, a silent peer, a comparison of many peers, memory, right peers.

    python3 benches/harness.py [interrupt|silent|differential|memory|right]... [--peerproof target/release/peerproof]
                               [--seconds N] [--shard hash:K/N]

Needs Python 3.11 and a built `peerproof`. Prints one line a figure, with the load of the machine; nothing is asserted.
"""

import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "corpora" / "peers" / "python"
# What stands in the place of a peer, by name.
NULL_PEERS = {
    "cat": "exec cat",
    "true": "exec true",
    "false": "exec false",
    "yes": "exec yes",
    "sleep": "exec sleep 1000",
    "/dev/zero": "exec cat /dev/zero",
}
# Lets a null peer speak on every connection, behind the head of a response without end.
LISTENS = """
import socket, subprocess, sys
port = [word.split(":")[-1] for word in sys.argv[2:] if word.split(":")[-1].isdigit()][0]
listener = socket.create_server(("127.0.0.1", int(port)), backlog=512)
while True:
    connection = listener.accept()[0]
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n")
    subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=connection, stdout=connection)
    connection.close()
"""
# Passes on what a server says but for lines with one of these words.
SILENCED = """
import json, subprocess, sys
words = [word.encode() for word in json.loads(sys.argv[1])]
peer = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
for line in peer.stdout:
    if not any(word in line for word in words):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
sys.exit(peer.wait())
"""
# By what a server refuses lines that are no requests, by its example.
REFUSALS = {"json_rpc_server": ["-32700", "-32600"], "toolhost": ['"ok":false']}
# Passes on what a program writes to standard output a second after it was written.
LATE = """
import queue, subprocess, sys, threading, time
pieces = queue.Queue()
def write():
    while True:
        due, piece = pieces.get()
        if not piece: return
        time.sleep(max(0, due - time.monotonic()))
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
peer = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
writer = threading.Thread(target=write)
writer.start()
while True:
    piece = peer.stdout.read1(1 << 16)
    pieces.put((time.monotonic() + 1, piece))
    if not piece: break
writer.join()
sys.exit(peer.wait())
"""
# What a right peer may meet: the words in front of its command, those for an HTTP server, and busy processes beside it.
SLOW_START = ["sh", "-c", 'sleep 5; exec "$@"', "sh"]
TROUBLES = {
    "starts after 5 s": (SLOW_START, SLOW_START, 0),
    "writes 1 s late": ([sys.executable, "-c", LATE], [], 0),
    "eight busy processes": ([], [], 8),
}


def start(args, folder):
    """The harness in a folder, with nothing to read yet and its output put away."""
    return subprocess.Popen(args, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def say(figure, target, text):
    print(f"{figure}: {text} (target {target}; load {os.getloadavg()[0]:.1f})", flush=True)


def results(folder):
    """The lines of the results that a run has left."""
    path = pathlib.Path(folder, "peerproof-out", "results.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_whole(folder):
    """Whether each planned check of each finished run stands in the results."""
    lines = results(folder)
    planned = sum(len(line["planned"]) for line in lines if line["type"] == "run")
    ends = sum(line["type"] == "end" for line in lines)
    return planned == sum(line["type"] == "check" for line in lines) and ends == sum(line["type"] == "run" for line in lines)


def interrupt(options):
    """SIGINT to exit, at several moments of several commands."""
    pp = options.peerproof
    peers = "".join(f'[[peer]]\nname = "p{n}"\nboundary = "json_rpc"\ncommand = ["{pp}", "peer", "json_rpc", "--stdio"]\n' for n in range(6))
    server = [pp, "peer", "json_rpc", "--stdio"]
    engine, worker = [pp, "peer", "envelope", "engine", "process"], [pp, "peer", "run_queue", "worker", "{queue}", "--runner", "{runner}"]
    runner = [pp, "peer", "run_log", "runner", "{request}", "{log}", "{peer}"]
    worst, torn, runs = (0, ""), 0, 0
    for words in (
        ["check"],
        ["check", "json_rpc", "--slow", "--", *server],
        ["check", "json_rpc", "--", "sleep", "1000"],
        ["check", "json_rpc", "--keep-going", "--", "sleep", "1000"],
        ["check", "json_rpc", "--keep-going", "--", "cat"],
        ["check", "toolhost", "--keep-going", "--", "yes"],
        ["matrix", "peers.toml"],
        ["matrix", "peers.toml", "--differential"],
        ["fuzz", "json_rpc", "--", *server],
        ["doctor", "json_rpc", "--", "sleep", "1000"],
        ["check", "envelope", "--", *engine],
        ["check", "python_tool", "--", pp, "peer", "python_tool", "runner"],
        ["check", "run_log", "--", *runner],
        ["check", "run_queue", "--", *worker],
        ["selftest", "toolhost"],
        ["record", "--boundary", "json_rpc", "--", *server],
        ["bench", "toolhost"],
    ):
        for after in (0.3, 1, 3, 6):
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "peers.toml").write_text(peers)
                harness = start([pp, *words], folder)
                time.sleep(after)
                if harness.poll() is not None:
                    continue
                harness.send_signal(signal.SIGINT)
                begun = time.monotonic()
                harness.wait()
                took = time.monotonic() - begun
                worst, runs = max(worst, (took, shlex.join(words).replace(pp, "peerproof"))), runs + 1
                torn += not is_whole(folder)
    say("SIGINT to exit", "2 s", f"{worst[0]:.2f} s at most in {runs} runs, in `{worst[1]}`; results that miss a check: {torn}")


def silent(options):
    """`check` of servers that are silent to what is malformed, over the same that answer."""
    for name, words in REFUSALS.items():
        took = []
        for told in ([], words):
            wrapper = [sys.executable, "-c", SILENCED, json.dumps(told)]
            with tempfile.TemporaryDirectory() as folder:
                config = changed(EXAMPLES / f"{name}.toml", lambda key, command: command if key == "run" else wrapper + command)
                pathlib.Path(folder, "peerproof.toml").write_text(config)
                begun = time.monotonic()
                # Reproducers are shortened within a budget of their own.
                start([options.peerproof, "check", "--shrink-time", "0"], folder).wait()
                took.append(time.monotonic() - begun)
        ratio = took[1] / took[0]
        say(f"check of {name} silent to malformed", "3 x", f"{ratio:.1f} x ({took[1]:.0f} s over {took[0]:.0f} s)")


def differential(options):
    """`matrix --differential`: 20 peers, half of them in Python, 24 conversations."""
    own = [options.peerproof, "peer", "json_rpc", "--stdio"]
    python = [sys.executable, str(EXAMPLES / "json_rpc_server.py")]
    rows = [
        "[[peer]]\n" + f'name = "p{n}"\nboundary = "json_rpc"\ncommand = {json.dumps(python if n % 2 else own)}\n'
        for n in range(20)
    ]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "peers.toml").write_text("".join(rows))
        begun = time.monotonic()
        code = start([options.peerproof, "matrix", "peers.toml", "--differential", "--conversations", "24"], folder).wait()
        took = time.monotonic() - begun
    say("matrix --differential, 20 peers, 24 conversations", "180 s", f"{took:.0f} s (exit {code})")


def memory(options):
    """The largest resident size of the harness for each null peer in the place of each example peer."""
    worst = (0, "")
    for path in sorted(EXAMPLES.glob("*.toml")):
        for name, script in NULL_PEERS.items():
            with tempfile.TemporaryDirectory() as folder:
                config = changed(path, lambda key, command: null(key, command, script))
                pathlib.Path(folder, "peerproof.toml").write_text(config)
                harness = start([options.peerproof, "check", "--keep-going", "--shrink-time", "0"], folder)
                peak, until = 0, time.monotonic() + options.seconds
                while harness.poll() is None:
                    status = pathlib.Path("/proc", str(harness.pid), "status").read_text()
                    peak = max([peak] + [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")])
                    if time.monotonic() > until:
                        harness.send_signal(signal.SIGINT)
                        until += 3600
                    time.sleep(0.02)
                worst = max(worst, (peak / 1024, f"{name} as {path.stem}"))
                print(f"  {path.stem} {name}: {peak / 1024:.0f} MiB", flush=True)
    say("memory of the harness with null peers", "256 MiB", f"{worst[0]:.0f} MiB at most ({worst[1]}), {options.seconds} s each")


def right(options):
    """What is found of the example peers, which are right, in each trouble."""
    for trouble, (before, before_http, busy) in TROUBLES.items():
        checks, found = 0, []
        # Each ends with its input.
        load = [subprocess.Popen([options.peerproof, "__busy"], stdin=subprocess.PIPE) for _ in range(busy)]
        for path in sorted(EXAMPLES.glob("*.toml")):
            front = {"http": before_http}
            with tempfile.TemporaryDirectory() as folder:
                config = changed(path, lambda key, command: front.get(key, before) + command)
                pathlib.Path(folder, "peerproof.toml").write_text(config)
                start([options.peerproof, "check", "--shard", options.shard], folder).wait()
                lines = [line for line in results(folder) if line["type"] == "check"]
            red = [line for line in lines if line.get("findings") or line["verdict"] == "flaky"]
            decided = sum(line["verdict"] in ("pass", "open") for line in lines)
            checks, found = checks + decided, found + red
            print(f"  {path.stem} {trouble}: {decided} of {len(lines)} good, {[line['id'] for line in red]}", flush=True)
        for process in load:
            process.communicate()
        say(f"findings on right peers, {trouble}", "0", f"{len(found)} beside {checks} checks that hold ({options.shard})")


def changed(path, change):
    """The text of an example's configuration, usable anywhere, with each command as `change` makes it of key and words."""

    def own(key, value):
        if isinstance(value, dict) and "command" in value:
            return {**value, "command": own(key, value["command"])}
        if not isinstance(value, list):
            return value
        return change(key, [str(path.parent / word) if word.endswith(".py") else word for word in value])

    example = tomllib.loads(path.read_text())
    return toml({**example, "peer": {key: own(key, value) for key, value in example["peer"].items()}})


def null(key, command, script):
    """A null peer in the place of a command."""
    if key == "http":
        return [sys.executable, "-c", LISTENS, script, *(word for word in command if word.startswith("{"))]
    return ["sh", "-c", script, "sh", *command[2:]]


def toml(config):
    """A configuration as TOML: tables of values that JSON writes alike, or of inline tables."""

    def value(it):
        if isinstance(it, dict):
            return "{ " + ", ".join(f"{json.dumps(name)} = {value(inner)}" for name, inner in it.items()) + " }"
        if isinstance(it, list):
            return "[" + ", ".join(map(value, it)) + "]"
        return json.dumps(it)

    tables = (f"[{name}]\n" + "".join(f"{json.dumps(key)} = {value(it)}\n" for key, it in table.items()) for name, table in config.items())
    return "\n".join(tables)


def main():
    figures = {"interrupt": interrupt, "silent": silent, "differential": differential, "memory": memory, "right": right}
    parser = argparse.ArgumentParser(description="Measures the harness itself.")
    parser.add_argument("figures", nargs="*", help=" ".join(figures))
    parser.add_argument("--peerproof", default=str(ROOT / "target" / "release" / "peerproof"))
    parser.add_argument("--seconds", type=float, default=60, help="time for each null peer before it is interrupted")
    parser.add_argument("--shard", default="hash:1/12", help="the checks of each right peer, as `check --shard` has it")
    options = parser.parse_args()
    options.peerproof = str(pathlib.Path(options.peerproof).resolve())
    for name in options.figures or figures:
        figures[name](options)


if __name__ == "__main__":
    main()
