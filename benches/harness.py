"""Measures the harness itself: what an interrupt takes, a silent peer, a comparison of many peers, memory.

    python3 benches/harness.py [interrupt|silent|differential|memory]... [--peerproof target/release/peerproof] [--seconds N]

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
# Passes on what a server says but for refusals of what is malformed.
SILENCED = """
import subprocess, sys
peer = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
for line in peer.stdout:
    if sys.argv[1] == "answers" or not (b"-32700" in line or b"-32600" in line):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
sys.exit(peer.wait())
"""


def start(args, folder):
    """The harness in a folder, with its output put away."""
    return subprocess.Popen(args, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def say(figure, target, text):
    print(f"{figure}: {text} (target {target}; load {os.getloadavg()[0]:.1f})", flush=True)


def is_whole(folder):
    """Whether each planned check of each finished run stands in the results."""
    results = pathlib.Path(folder, "peerproof-out", "results.ndjson")
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    planned = sum(len(line["planned"]) for line in lines if line["type"] == "run")
    ends = sum(line["type"] == "end" for line in lines)
    return planned == sum(line["type"] == "check" for line in lines) and ends == sum(line["type"] == "run" for line in lines)


def interrupt(options):
    """SIGINT to exit, at several moments of several commands."""
    pp = options.peerproof
    peers = "".join(f'[[peer]]\nname = "p{n}"\nboundary = "json_rpc"\ncommand = ["{pp}", "peer", "json_rpc", "--stdio"]\n' for n in range(6))
    server = [pp, "peer", "json_rpc", "--stdio"]
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
    """`check` of a server that is silent to what is malformed, over the same that answers."""
    with tempfile.TemporaryDirectory() as folder:
        wrapper = pathlib.Path(folder, "wrapper.py")
        wrapper.write_text(SILENCED)
        example = tomllib.loads((EXAMPLES / "json_rpc_server.toml").read_text())
        took = {}
        for how in ("answers", "silent"):
            config = dict(example)
            argv = [sys.executable, str(wrapper), how, sys.executable, str(EXAMPLES / "json_rpc_server.py")]
            config["peer"] = {**example["peer"], "command": argv}
            path = pathlib.Path(folder, f"{how}.toml")
            path.write_text(toml(config))
            begun = time.monotonic()
            # Reproducers are shortened within a budget of their own.
            start([options.peerproof, "check", "--config", str(path), "--shrink-time", "0"], folder).wait()
            took[how] = time.monotonic() - begun
    ratio = took["silent"] / took["answers"]
    say("check of a peer silent to malformed", "3 x", f"{ratio:.1f} x ({took['silent']:.0f} s over {took['answers']:.0f} s)")


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
        example = tomllib.loads(path.read_text())
        for name, script in NULL_PEERS.items():
            peer = {key: null(key, value, script) for key, value in example["peer"].items()}
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "peerproof.toml").write_text(toml({**example, "peer": peer}))
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


def null(key, value, script):
    """What is configured of an example peer under this key, with a null peer in the place of its command."""
    if key == "http":
        command = value["command"] if isinstance(value, dict) else value
        told = [word for word in command if word.startswith("{")]
        command = [sys.executable, "-c", LISTENS, script, *told]
        return {**value, "command": command} if isinstance(value, dict) else command
    return ["sh", "-c", script, "sh", *value[2:]] if key != "env" and isinstance(value, list) else value


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
    figures = {"interrupt": interrupt, "silent": silent, "differential": differential, "memory": memory}
    parser = argparse.ArgumentParser(description="Measures the harness itself.")
    parser.add_argument("figures", nargs="*", help=" ".join(figures))
    parser.add_argument("--peerproof", default=str(ROOT / "target" / "release" / "peerproof"))
    parser.add_argument("--seconds", type=float, default=60, help="time for each null peer before it is interrupted")
    options = parser.parse_args()
    options.peerproof = str(pathlib.Path(options.peerproof).resolve())
    for name in options.figures or figures:
        figures[name](options)


if __name__ == "__main__":
    main()
