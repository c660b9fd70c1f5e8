#!/usr/bin/env python3
"""A replayer of run logs: says whether a log can have happened so.

    run_log_replayer.py LOG TOOLHOST

Prints `REPLAY_STRICT OK` and exits with status 0, or `REPLAY_STRICT FAIL line N: REASON` and exits with status 1. The log is read
line by line; of the run only its inputs and its state are kept. Tools whose events say `deterministic` are run again, all in one
session of `TOOLHOST --serve`, and their outputs and states are compared. MACHINA_TOOLHOST_TIMEOUT bounds each of them, seconds.
"""

import hashlib
import os
import re
import selectors
import signal
import subprocess
import sys
import time

import strict_json
from process_tree import adopt_orphans, kill_tree

TIMEOUT_S = 30.0
TIMEOUT_S_MAX = 60.0
REPLY_BYTES_MAX = 1024 * 1024
BLOCK_BYTES = 64 * 1024
KINDS = ("PICK", "ASK_SUP", "NOOP", "INVALID")
FAILED = ("TOOL_ERROR", "INVALID_PICK", "BREAKER_TRIP")
ARTIFACT = ("type", "provenance", "content_json")


class Wrong(Exception):
    """What cannot have happened so."""


def same(one, other):
    """Whether two JSON values are equal; Python takes True for 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return type(one) in (int, float) and type(other) in (int, float) and one == other or (
        type(one) is type(other) and one == other
    )


def member(payload, name, kind, filled=False):
    """A member of this type; raises Wrong where it is absent, of another type, or empty where it must not be."""
    value = payload.get(name)
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int or filled and not value:
        raise Wrong(f"`{name}` is absent or not as it must be")
    return value


def embedded(text, name):
    try:
        return strict_json.loads(text)
    except strict_json.MalformedJson as error:
        raise Wrong(f"`{name}`: {error}") from None


def artifact_of(value):
    """The members that count of an artifact; raises Wrong where it is none."""
    if not isinstance(value, dict):
        raise Wrong("an artifact is no object")
    held = {name: member(value, name, str) for name in ARTIFACT}
    held["size_bytes"] = member(value, "size_bytes", int)
    if held["size_bytes"] < 0:
        raise Wrong("`size_bytes` is negative")
    return held


def state_of(value, before=None):
    """A state that is full, or a delta on the one before; raises Wrong where it is none."""
    if not isinstance(value, dict):
        raise Wrong("a state is no object")
    if value.get("delta") is True and before is None:
        raise Wrong("a delta in the place of a full state")
    state = dict(before or {}) if value.get("delta") is True else {}
    slots = value.get("slots", {})
    if not isinstance(slots, dict):
        raise Wrong("`slots` is no object")
    for slot, held in slots.items():
        if slot not in map(str, range(8)):
            raise Wrong("a slot is none of 0 to 7")
        state[int(slot)] = artifact_of(held)
    for slot in value.get("removed_slots", []):
        state.pop(slot, None)
    return state


def digest_of(state):
    text = "".join(
        f"{slot}:{held['type']}:{held['provenance']}:{held['size_bytes']}:"
        f"{hashlib.sha256(held['content_json'].encode()).hexdigest()}|"
        for slot, held in sorted(state.items())
    )
    return hashlib.sha256(text.encode()).hexdigest()


def patched(state, items):
    """The state behind a tx_patch; raises Wrong where an item is none."""
    state = dict(state)
    for item in items:
        if not isinstance(item, dict):
            raise Wrong("an item of a patch is no object")
        path = re.fullmatch(r"/slots/([0-7])", member(item, "path", str), re.ASCII)
        op = item.get("op")
        if not path or not isinstance(op, str) or op not in ("add", "replace", "remove"):
            raise Wrong("`op` or `path` of an item of a patch")
        if op == "remove":
            if item.get("value") is not None:
                raise Wrong("remove has a value")
            state.pop(int(path[1]), None)
        else:
            state[int(path[1])] = artifact_of(item.get("value"))
    return state


class Toolhost:
    """A session in which tools are run again; it begins with the first of them."""

    def __init__(self, program, timeout_s):
        self.program = program
        self.timeout_s = timeout_s
        self.process = None

    def run(self, aid, inputs, state):
        """Output and state of a tool; raises Wrong where it has none."""
        slots = {str(slot): held for slot, held in state.items()}
        request = {"aid": aid, "input_json": strict_json.dumps(inputs), "ds_state": {"slots": slots}}
        deadline = time.monotonic() + self.timeout_s
        try:
            if self.process is None:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
                argv = [self.program, "--serve", "default"]
                self.process = subprocess.Popen(argv, start_new_session=True, bufsize=0, **pipes)
            self.process.stdin.write(strict_json.dumps(request).encode() + b"\n")
            reply = strict_json.loads(self.line(deadline))
        except (OSError, strict_json.MalformedJson) as error:
            raise Wrong(f"the toolhost: {error}") from None
        if not isinstance(reply, dict) or reply.get("ok") is not True or reply.get("status") != "OK":
            raise Wrong("the tool fails when it is run again")
        return embedded(member(reply, "output_json", str), "output_json"), state_of(reply.get("ds_state"), state)

    def line(self, deadline):
        line = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise Wrong("the tool takes too long")
                block = os.read(self.process.stdout.fileno(), BLOCK_BYTES)
                if not block or len(line) + len(block) > REPLY_BYTES_MAX:
                    raise Wrong("the toolhost ends, or writes too much")
                line += block
        return bytes(line)

    def close(self):
        if self.process is not None:
            kill_tree(self.process)


class Replay:
    """A run as far as its log was read."""

    def __init__(self, toolhost):
        self.toolhost = toolhost
        self.next = "start"
        self.run_id = None
        self.selections = 0
        self.base = 0
        self.inputs = {}
        self.state = {}
        self.aid = None
        self.patch = None

    def line(self, line):
        event = member(line, "event", str, filled=True)
        step = member(line, "step", int)
        payload = member(line, "payload", dict)
        run_id = member(line, "run_id", str, filled=True)
        if step < 0:
            raise Wrong("`step` is negative")
        self.run_id = self.run_id or run_id
        if run_id != self.run_id:
            raise Wrong("another run_id")
        events = {
            "run_started": ("start",),
            "selector_chosen": ("selection",),
            "inputs_patched": ("patch", "tool"),
            "tool_ok": ("tool", "event"),
            "tool_error": ("tool", "event"),
            "run_finished": ("selection",),
        }
        if event not in events:
            if self.next in ("start", "end"):
                raise Wrong(f"{event} outside of the run")
            return
        if self.next not in events[event]:
            raise Wrong(f"{event} in the wrong place")
        if event == "selector_chosen" and self.selections == 0 and step == 1:
            self.base = 1
        last = max(self.base + self.selections - 1, 0)
        due = {"run_started": 0, "selector_chosen": self.base + self.selections}.get(event, last)
        if step < due or step > due and event != "run_finished":
            raise Wrong(f"{event} with the step {step}")
        getattr(self, event)(payload)

    def run_started(self, payload):
        member(payload, "goal_id", str, filled=True)
        self.inputs = member(payload, "inputs", dict)
        self.state = state_of(payload.get("state", {}))
        self.next = "selection"

    def selector_chosen(self, payload):
        kind = member(payload, "kind", str)
        member(payload, "raw", str)
        if kind not in KINDS:
            raise Wrong(f"the kind {kind!r}")
        self.selections += 1
        self.patch = None
        if kind != "PICK":
            return
        if not re.fullmatch(r"SID[0-9]{4}", member(payload, "sid", str), re.ASCII):
            raise Wrong("`sid` is not SID and four digits")
        self.aid = member(payload, "aid", str, filled=True)
        self.next = "tool"
        if payload.get("input_patch_json") is not None:
            self.patch = embedded(member(payload, "input_patch_json", str), "input_patch_json")
            if not isinstance(self.patch, dict):
                raise Wrong("`input_patch_json` holds no object")
            self.next = "patch" if self.patch else "tool"

    def inputs_patched(self, payload):
        patch = member(payload, "patch", dict)
        if self.patch is not None and not same(patch, self.patch):
            raise Wrong("the patch is not that of the selection")
        self.inputs = {**self.inputs, **patch}
        if "inputs" in payload and not same(payload["inputs"], self.inputs):
            raise Wrong("the inputs are not those before with the patch")
        self.next = "event"

    def same_aid(self, payload):
        if member(payload, "aid", str) != self.aid:
            raise Wrong("the tool is not the one that was selected")
        self.next = "selection"

    def tool_ok(self, payload):
        self.same_aid(payload)
        deterministic = member(payload, "deterministic", bool)
        output = embedded(member(payload, "output_json", str), "output_json")
        before, self.state = self.state, patched(self.state, member(payload, "tx_patch", list))
        self.same_digest(payload)
        if deterministic:
            again, after = self.toolhost.run(self.aid, self.inputs, before)
            if not same(again, output):
                raise Wrong("the tool gives another output")
            if {slot: held["content_json"] for slot, held in after.items()} != {
                slot: held["content_json"] for slot, held in self.state.items()
            } or digest_of(after) != digest_of(self.state):
                raise Wrong("the tool leads to another state")

    def tool_error(self, payload):
        self.same_aid(payload)
        if member(payload, "status", str) not in FAILED:
            raise Wrong("the status is none of a failure")
        member(payload, "error", str, filled=True)

    def run_finished(self, payload):
        member(payload, "reason", str, filled=True)
        if member(payload, "steps", int) != self.selections:
            raise Wrong(f"steps is not {self.selections}")
        self.same_digest(payload)
        self.next = "end"

    def same_digest(self, payload):
        if member(payload, "state_digest", str).lower() != digest_of(self.state):
            raise Wrong("the state has another digest")


def replay(log, toolhost):
    """Number and reason of the first line that is wrong; None where there is none."""
    run, number = Replay(toolhost), 0
    try:
        for number, line in enumerate(log, 1):
            if line.strip(b" \t\r\n"):
                value = strict_json.loads(line)
                if not isinstance(value, dict):
                    raise Wrong("a line is no object")
                run.line(value)
        if run.next != "end":
            raise Wrong("the log ends without run_finished")
    except (Wrong, strict_json.MalformedJson) as error:
        return max(number, 1), str(error).replace("\n", " ")
    return None


def timeout_s():
    try:
        seconds = float(os.environ.get("MACHINA_TOOLHOST_TIMEOUT", ""))
        return min(seconds, TIMEOUT_S_MAX) if seconds > 0 else TIMEOUT_S
    except ValueError:
        return TIMEOUT_S


def main(argv):
    if len(argv) != 3:
        print("usage: run_log_replayer.py LOG TOOLHOST", file=sys.stderr)
        return 2
    adopt_orphans()
    toolhost = Toolhost(argv[2], timeout_s())

    def terminate(_signal, _frame):
        toolhost.close()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    try:
        with open(argv[1], "rb") as log:
            wrong = replay(log, toolhost)
    except OSError as error:
        print(f"{argv[1]}: {error}", file=sys.stderr)
        return 2
    finally:
        toolhost.close()
    if wrong:
        print(f"REPLAY_STRICT FAIL line {wrong[0]}: {wrong[1]}")
        return 1
    print("REPLAY_STRICT OK")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
