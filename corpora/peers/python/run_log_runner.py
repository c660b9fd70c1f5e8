#!/usr/bin/env python3
"""An example runner: the provider side of the run_log boundary, in the standard library alone.

    run_log_runner.py REQUEST LOG PEER     makes the run that the file REQUEST asks for and appends what happens to LOG

The selector is that of policy_select.py. The toolhost PEER is started as `PEER --serve PLUGIN` for each execution, and is
sent one request with the full state: the selector leaves no process of ours running beside a driver.
"""

import hashlib
import os
import select
import signal
import subprocess
import sys
import time
import uuid

sys.dont_write_bytecode = True  # leave no file behind

import strict_json  # noqa: E402
from policy_select import Config, Selector, Terminated  # noqa: E402
from process_tree import adopt_orphans, kill_descendants  # noqa: E402

REPLY_BYTES_MAX = 1024 * 1024  # with its newline
STEPS_MAX = 200  # of a request without max_steps
TIMEOUT_S_DEFAULT = 30.0
FAILED = ("TOOL_ERROR", "INVALID_PICK", "BREAKER_TRIP")
MODES = ("POLICY_ONLY", "FALLBACK_ONLY")


class Refused(Exception):
    """The request is wrong."""


class ToolFailure(Exception):
    """The toolhost did not succeed; `status` is that of the event."""

    def __init__(self, error, status="TOOL_ERROR"):
        super().__init__(error)
        self.status = status


# ---------------------------------------------------------------------------------------------------------------
# The request


def member(value, name, kind, default=None):
    """A member of this type; `default` where it is absent. A boolean is no integer."""
    given = value.get(name, default)
    if type(given) is not kind and name in value:
        raise Refused(f"{name} is of another type")
    return given


def parse_request(data):
    try:
        value = strict_json.loads(data)
    except strict_json.MalformedJson as error:
        raise Refused(str(error)) from None
    if type(value) is not dict:
        raise Refused("no object")
    request = {
        "goal_id": member(value, "goal_id", str),
        "inputs": member(value, "inputs", dict, {}),
        "control_mode": member(value, "control_mode", str, "FALLBACK_ONLY"),
        "request_id": member(value, "request_id", str),
        "max_steps": member(value, "max_steps", int, STEPS_MAX),
        "tools": member(value, "tools", list, []),
    }
    if not request["goal_id"]:
        raise Refused("no goal_id")
    if request["control_mode"] not in MODES:
        raise Refused("no such control_mode")
    if request["max_steps"] < 1:
        raise Refused("max_steps is less than 1")
    for number, tool in enumerate(request["tools"]):
        if type(tool) is not dict or not member(tool, "aid", str):
            raise Refused("a tool has no aid")
        tags = member(tool, "tags", list, [])
        if any(type(tag) is not str for tag in tags):
            raise Refused("a tag is no string")
        entry = {"sid": f"SID{number + 1:04}", "aid": tool["aid"], "name": member(tool, "name", str, tool["aid"])}
        request["tools"][number] = (entry | {"tags": tags}, member(tool, "deterministic", bool, False))
    return request


# ---------------------------------------------------------------------------------------------------------------
# States and digests


def sha256(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def state_digest(slots):
    return sha256(
        "".join(
            f"{slot}:{held['type']}:{held['provenance']}:{held['size_bytes']}:{sha256(held['content_json'])}|"
            for slot, held in sorted(slots.items())
        )
    )


def parse_artifact(slot, value):
    if slot not in "01234567" or len(slot) != 1 or type(value) is not dict:
        raise ToolFailure("no such slot, or no artifact")
    artifact = {name: value.get(name) for name in ("type", "provenance", "content_json", "size_bytes")}
    if [type(part) for part in artifact.values()] != [str, str, str, int]:
        raise ToolFailure("a member of an artifact is of another type")
    if artifact["size_bytes"] != len(artifact["content_json"].encode("utf-8")):
        raise ToolFailure("size_bytes is wrong")
    return artifact


def changed(slots, ds_state):
    """The state after a reply of a session: its delta on the state that was sent."""
    if type(ds_state) is not dict or type(ds_state.get("slots", {})) is not dict:
        raise ToolFailure("ds_state is no state")
    after = dict(slots) if ds_state.get("delta") is True else {}
    for slot in ds_state.get("removed_slots", []):
        if type(slot) is not int or not 0 <= slot <= 7:
            raise ToolFailure("no such slot")
        after.pop(str(slot), None)
    after.update({slot: parse_artifact(slot, value) for slot, value in ds_state.get("slots", {}).items()})
    return after


def patch_between(before, after):
    items = []
    for slot in sorted(before.keys() | after.keys()):
        path = {"path": f"/slots/{slot}"}
        if slot not in after:
            items.append({"op": "remove", **path})
        elif after[slot] != before.get(slot):
            items.append({"op": "replace" if slot in before else "add", **path, "value": after[slot]})
    return items


# ---------------------------------------------------------------------------------------------------------------
# The toolhost


class Toolhost:
    """A session for each execution."""

    def __init__(self, path, timeout_s):
        self.path = path
        self.timeout_s = timeout_s
        self.process = None

    def run(self, aid, inputs, slots):
        """One execution → its output_json and the state behind it."""
        request = {"aid": aid, "input_json": strict_json.dumps(inputs), "ds_state": {"slots": slots}}
        try:
            argv = [self.path, "--serve", "default"]
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.process.stdin.write(strict_json.dumps(request).encode("utf-8") + b"\n")
            self.process.stdin.flush()
            return self.judged(self.line(), slots)
        except OSError as error:
            raise ToolFailure(f"the toolhost does not run: {error.strerror}") from None
        finally:
            self.close()

    def line(self):
        deadline, line = time.monotonic() + self.timeout_s, b""
        while not line.endswith(b"\n"):
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], left_s)[0]:
                raise ToolFailure("the toolhost is late")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            line += chunk
            if not chunk or len(line) > REPLY_BYTES_MAX:
                raise ToolFailure("the toolhost ended within its reply, or wrote too much")
        return line

    def judged(self, line, slots):
        try:
            reply = strict_json.loads(line)
        except strict_json.MalformedJson as error:
            raise ToolFailure(f"the reply is no JSON: {error}") from None
        if type(reply) is not dict or reply.get("ok") is not True or reply.get("status") != "OK":
            told = reply if type(reply) is dict else {}
            error, status = told.get("error"), told.get("status")
            said = error if type(error) is str and error else "the tool failed"
            raise ToolFailure(said, status if status in FAILED else FAILED[0])
        output = reply.get("output_json")
        try:
            strict_json.loads(output if type(output) is str else "")
        except strict_json.MalformedJson as error:
            raise ToolFailure(f"output_json is no JSON: {error}") from None
        return output, changed(slots, reply.get("ds_state"))

    def close(self):
        if self.process is not None:
            kill_descendants()
            for pipe in (self.process.stdin, self.process.stdout):
                try:
                    pipe.close()
                except OSError:
                    pass  # what it did not read
            self.process.wait()
            self.process = None


# ---------------------------------------------------------------------------------------------------------------
# The run


class Run:
    def __init__(self, request, log, selector, toolhost):
        self.request, self.log, self.selector, self.toolhost = request, log, selector, toolhost
        self.header = {"run_id": uuid.uuid4().hex, "spec_version": "1.4.2", "profile_id": "A"}
        if request["request_id"] is not None:
            self.header["request_id"] = request["request_id"]
        self.inputs, self.slots, self.step = request["inputs"], {}, 0
        menu = [entry for entry, _ in request["tools"]]
        entries = "|".join(f"{it['sid']}={it['aid']}:{','.join(sorted(it['tags']))}" for it in menu)
        self.asked = {
            "control_mode": request["control_mode"],
            "goal_digest": f"{request['goal_id']}|{sha256(entries)}|FLAGS:none",
            "menu": menu,
        }

    def write(self, event, **payload):
        line = {"payload": payload, "step": self.step, "event": event, "ts": time.time(), **self.header}
        self.log.write(strict_json.dumps(line).encode("utf-8") + b"\n")
        self.log.flush()

    def make(self):
        mode = self.request["control_mode"]
        self.write("run_started", goal_id=self.request["goal_id"], inputs=self.inputs, control_mode=mode)
        reason = None
        while reason is None:
            self.write("menu_built", entries=len(self.asked["menu"]))
            reason = self.select()
            self.step += 1
            if reason is None and self.step >= self.request["max_steps"]:
                reason = "max_steps"
        self.write("run_finished", reason=reason, steps=self.step, state_digest=state_digest(self.slots))

    def select(self):
        """One selection and what follows it → why the run ends, or None."""
        asked = {**self.asked, "inputs": self.inputs, "state_digest": state_digest(self.slots)}
        selection = self.selector.select(strict_json.dumps(asked).encode("utf-8"))
        selection.pop("inputs", None)
        tools = {entry["sid"]: (entry["aid"], flag) for entry, flag in self.request["tools"]}
        aid, deterministic = tools.get(selection.get("sid"), (None, False))
        self.write("selector_chosen", **selection, **({"aid": aid} if aid else {}))
        if "input_patch_json" in selection:
            patch = strict_json.loads(selection["input_patch_json"])
            self.inputs = {**self.inputs, **patch}
            self.write("inputs_patched", patch=patch, inputs=self.inputs)
        if selection["kind"] != "PICK":
            return {"NOOP": "noop", "INVALID": "invalid"}.get(selection["kind"])
        try:
            output, after = self.toolhost.run(aid, self.inputs, self.slots)
        except ToolFailure as error:
            self.write("tool_error", aid=aid, status=error.status, error=str(error))
            return None
        patch, self.slots = patch_between(self.slots, after), after
        told = {"output_json": output, "tx_patch": patch, "state_digest": state_digest(after)}
        self.write("tool_ok", aid=aid, deterministic=deterministic, **told)
        return None


def timeout_of(text):
    try:
        seconds = float(text)
    except ValueError:
        return TIMEOUT_S_DEFAULT
    return seconds if 0 < seconds < 1e9 else TIMEOUT_S_DEFAULT


def terminate(_signal, _frame):
    raise Terminated


def main(arguments):
    if len(arguments) != 3:
        sys.stderr.write("usage: run_log_runner.py REQUEST LOG PEER\n")
        return 2
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    adopt_orphans()
    request_path, log_path, peer = arguments
    try:
        with open(request_path, "rb") as file:
            request = parse_request(file.read())
        with open(log_path, "xb") as log:
            toolhost = Toolhost(os.path.abspath(peer), timeout_of(os.environ.get("MACHINA_TOOLHOST_TIMEOUT", "")))
            Run(request, log, Selector(Config(os.environ)), toolhost).make()
    except Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kill_descendants()  # again: the signal may have come in the middle of starting or killing
        return 128 + signal.SIGTERM
    except Refused as error:
        sys.stderr.write(f"the request is refused: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
