#!/usr/bin/env python3
"""An example selector: the consumer side of the policy_driver boundary, in the standard library alone.

    policy_select.py                 one request a line on stdin, one Selection a line on stdout, until EOF

A request is `{"control_mode", "goal_digest", "state_digest", "inputs", "menu"}`. With control mode POLICY_ONLY the
command of MACHINA_POLICY_CMD decides: it gets the path of a payload file as its last argument and prints one block.
Whatever it does instead, within the timeout and a second there is a Selection, and nothing of the driver is left. With
any other mode, and after a failure, the fallback decides: the first entry of the menu, NOOP where there is none.

The environment configures it, as the contract says; see `Config`. Files beside it: policy_block.py reads blocks,
policy_launch.py says which commands may run and starts them under limits, process_output.py reads what they write,
process_tree.py ends them.
"""

import os
import re
import select
import signal
import sys
import time

sys.dont_write_bytecode = True  # leave no file behind

import strict_json  # noqa: E402
from policy_block import InvalidBlock, parse_block  # noqa: E402
from policy_launch import Allowlist, Disallowed, DriverFailure, Launch, run_driver, split_command  # noqa: E402
from process_tree import adopt_orphans, kill_descendants  # noqa: E402

REQUEST_BYTES_MAX = 10 * 1024 * 1024  # a line without its LF; inclusive
READ_BYTES = 64 * 1024
NUMBER_MAX = 2**31 - 1  # of every variable: times, bytes, MB and counts alike
TIMEOUT_MS_OF_PROFILE = {"dev": 60_000, "prod": 30_000}
TIMEOUT_MS_DEFAULT = 2_500
STDERR_BYTES_SHOWN = 2048  # at most one atomic write
SID = re.compile(r"SID[0-9]{4}")


class MalformedRequest(Exception):
    """The line is answered by INVALID; no driver runs and no failure is counted."""


class Terminated(Exception):
    """We were asked to end."""


def number_of(environ, name, default, least=0):
    """A number of decimal digits; anything else means the default, and nothing means unlimited."""
    text = environ.get(name, "")
    if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= NUMBER_MAX:
        return default
    return int(text)


class Config:
    """What the environment says; read once."""

    def __init__(self, environ):
        policy = "MACHINA_POLICY_"
        self.command = environ.get(policy + "CMD", "")
        profile = environ.get("MACHINA_PROFILE", "")
        timeout_ms = TIMEOUT_MS_OF_PROFILE.get(profile, TIMEOUT_MS_DEFAULT)
        self.timeout_s = number_of(environ, policy + "TIMEOUT_MS", timeout_ms, least=1) / 1000
        self.fail_threshold = number_of(environ, policy + "FAIL_THRESHOLD", 5, least=1)
        self.cooldown_s = number_of(environ, policy + "COOLDOWN_MS", 30_000) / 1000
        self.launch = Launch(
            environ=environ,
            stdout_bytes_max=number_of(environ, policy + "STDOUT_MAX", 65_536),
            limits={
                "cpu": number_of(environ, policy + "RLIMIT_CPU_SEC", 2),
                "as": number_of(environ, policy + "RLIMIT_AS_MB", 768) << 20,
                "fsize": number_of(environ, policy + "RLIMIT_FSIZE_MB", 10) << 20,
                "nofile": number_of(environ, policy + "RLIMIT_NOFILE", 64),
                "nproc": number_of(environ, policy + "RLIMIT_NPROC", 32),
            },
        )
        self.payload_folder = os.path.join(os.getcwd(), environ.get("TMPDIR", "") or "/tmp")
        names = environ.get(policy + "ALLOWED_EXE", "") or "python3,python,bash,sh,node"
        root = environ.get(policy + "ALLOWED_SCRIPT_ROOT", "")
        self.allowlist = Allowlist(
            names=[name.strip() for name in names.split(",") if name.strip()],
            script_root=root or os.path.join(environ.get("MACHINA_ROOT", "") or os.getcwd(), "policies"),
            search_path=environ.get("PATH", os.defpath),
            unsafe=environ.get(policy + "ALLOW_UNSAFE", "") == "1",
        )


class Breaker:
    """Counts consecutive failures. `now` is in seconds of a clock that never goes back."""

    def __init__(self, threshold, cooldown_s):
        self.threshold = threshold
        self.cooldown_s = cooldown_s
        self.failures = 0
        self.open_until = None

    def is_open(self, now):
        return self.open_until is not None and now < self.open_until

    def record_success(self):
        self.failures = 0
        self.open_until = None

    def record_failure(self, now):
        """The failure that reaches the threshold opens; after a cooldown the count stands there still."""
        self.failures = min(self.failures + 1, self.threshold)
        if self.failures >= self.threshold and self.cooldown_s > 0:
            self.open_until = now + self.cooldown_s


# ---------------------------------------------------------------------------------------------------------------
# Requests and Selections


def parse_request(line):
    """A line → the request, every member with its type; absent ones are empty."""
    try:
        request = strict_json.loads(line)
    except strict_json.MalformedJson as error:
        raise MalformedRequest(str(error)) from None
    if not isinstance(request, dict):
        raise MalformedRequest("not an object")
    members = {"control_mode": "", "goal_digest": "", "state_digest": "", "inputs": {}, "menu": []}
    for name, default in members.items():
        value = request.get(name, default)
        if not isinstance(value, type(default)):
            raise MalformedRequest(f"{name} is of another type")
        members[name] = value
    seen = set()
    for entry in members["menu"]:
        sid = entry.get("sid") if isinstance(entry, dict) else None
        if not isinstance(sid, str) or not SID.fullmatch(sid) or sid in seen:
            raise MalformedRequest("an entry of the menu is no object, or its sid is not SID and four digits, once")
        seen.add(sid)
    return members


def invalid(reason):
    return {"kind": "INVALID", "raw": f"invalid: {reason}"}


def fallback(request, reason):
    """The internal selector: a function of the request alone."""
    menu = request["menu"]
    chosen = {"kind": "PICK", "sid": menu[0]["sid"]} if menu else {"kind": "NOOP"}
    return {**chosen, "raw": f"fallback: {reason}"}


def selection_of(block, request, raw):
    """What the driver's block says, with the shallow merge of its patch."""
    if block.kind != "PICK":
        return {"kind": block.kind, "raw": raw}
    if all(entry["sid"] != block.sid for entry in request["menu"]):
        raise InvalidBlock("the menu has no such SID")
    selection = {"kind": "PICK", "sid": block.sid}
    if block.patch_text is not None:
        selection["input_patch_json"] = block.patch_text
    return {**selection, "raw": raw, "inputs": {**request["inputs"], **(block.patch or {})}}


class Selector:
    """One per process: requests in, Selections out, and the breaker between them."""

    def __init__(self, config, clock=time.monotonic, run=run_driver):
        self.config = config
        self.clock = clock
        self.run = run
        self.breaker = Breaker(config.fail_threshold, config.cooldown_s)

    def answer(self, line):
        """A line of stdin → the line of stdout, without its LF."""
        try:
            return strict_json.dumps(self.select(line)).encode("utf-8")
        except RecursionError:
            return strict_json.dumps(invalid("malformed request: nested too deeply")).encode("utf-8")

    def select(self, line):
        """A line of stdin (None: one that is too long) → the Selection."""
        try:
            if line is None:
                raise MalformedRequest("the line is too long")
            request = parse_request(line)
        except MalformedRequest as error:
            return invalid(f"malformed request: {error}")
        mode = request["control_mode"]
        if mode == "FALLBACK_ONLY":
            return fallback(request, "the control mode asks for it")
        if mode != "POLICY_ONLY":
            return invalid("no such control mode")
        if not self.config.command.strip(" \t\n"):
            return fallback(request, "no command is configured")
        try:
            # Before the breaker: a command that may not run is no failure of a driver.
            argv = self.config.allowlist.admit(split_command(self.config.command))
        except Disallowed as error:
            return invalid(f"command not allowed: {error}")
        if self.breaker.is_open(self.clock()):
            return fallback(request, "the breaker is open")
        try:
            selection = self.ask(request, argv)
        except (DriverFailure, InvalidBlock) as error:
            self.breaker.record_failure(self.clock())
            return fallback(request, error)
        self.breaker.record_success()
        return selection

    def ask(self, request, argv):
        """One start of the driver → its Selection. Its payload is gone when this returns or raises."""
        payload = strict_json.dumps(request).encode("utf-8")
        path = os.path.join(self.config.payload_folder, f"policy-payload-{os.urandom(8).hex()}.json")
        try:
            with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(payload)
            stdout = self.run(self.config.launch, argv, path, self.config.timeout_s)
        except OSError as error:
            raise DriverFailure(f"not run: {error.strerror}") from None
        finally:
            try:
                os.unlink(path)
            except OSError:
                pass  # the driver took it away
        return selection_of(parse_block(stdout), request, stdout.decode("utf-8"))


# ---------------------------------------------------------------------------------------------------------------
# Streams


class Lines:
    """Lines of stdin, without LF; None for one over the limit, once, at the crossing, and then on behind its LF."""

    def __init__(self, bytes_max=REQUEST_BYTES_MAX):
        self.bytes_max = bytes_max

    def __iter__(self):
        held, searched, skipping = bytearray(), 0, False
        while True:
            end = held.find(b"\n", searched)
            if end >= 0:
                line = bytes(held[:end])
                del held[: end + 1]
                searched = 0
                if skipping:
                    skipping = False
                else:
                    yield line if len(line.removesuffix(b"\r")) <= self.bytes_max else None
                continue
            searched = len(held)
            if skipping:
                held.clear()
                searched = 0
            elif searched > self.bytes_max + 1:
                held.clear()
                searched, skipping = 0, True
                yield None
                continue
            chunk = os.read(0, READ_BYTES)
            if not chunk:
                if held and not skipping:
                    yield bytes(held) if len(held) <= self.bytes_max else None
                return
            held += chunk


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def show_stderr(tail):
    """What the driver said on stderr, for whoever debugs it; dropped where nobody reads ours."""
    if tail:
        try:
            if select.select([], [2], [], 0)[1]:
                os.write(2, tail[-STDERR_BYTES_SHOWN:])
        except OSError:
            pass


def terminate(_signal, _frame):
    raise Terminated


def main(arguments):
    if arguments:
        sys.stderr.write("usage: policy_select.py   with requests on stdin; MACHINA_POLICY_CMD names the driver\n")
        return 2
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored (some parents leave it so), exit statuses would be lost
    adopt_orphans()
    try:
        config = Config(os.environ)
        config.launch.show_stderr = show_stderr
        selector = Selector(config)
        for line in Lines():
            if line is not None and not line.strip(b" \t\r"):
                continue
            write_all(selector.answer(line) + b"\n")
    except Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        kill_descendants()  # again: the signal may have come in the middle of starting or killing
        return 128 + signal.SIGTERM
    except BrokenPipeError:
        return 1  # nobody reads Selections any more
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
