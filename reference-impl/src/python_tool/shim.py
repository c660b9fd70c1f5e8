"""Runs one tool for the reference runner: the order on standard input, the outcome on what was standard output.

An order is one JSON object: entry, payload, guarantees (names in force), env_read (`refuse` or `empty`), caught (`success`
or `failure`: what comes of a tool that catches what is refused to it). An outcome is its length in bytes, a line feed, and
one JSON object: ok, result or error, and `exit` where the tool asked to end the process. What the
tool itself prints goes to standard error, and it has nothing on standard input.
"""

import os
import sys

ORDER = sys.stdin.buffer.read()
CHANNEL = os.dup(1)
os.dup2(2, 1)
NULL = os.open(os.devnull, os.O_RDONLY)
os.dup2(NULL, 0)
os.close(NULL)
OWNER = os.getpid()
sys.path[0] = os.getcwd()
sys.path[1:1] = sys.argv[1:]

import atexit

try:
    # The half of `json` that is written in C. The other half imports `re`, which takes as long as all of Python's start.
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:
    import json

    load, dump = json.loads, json.dumps
else:

    class Plain:
        """Numbers, constants and objects as `json.loads` has them."""

        strict = True
        object_hook = object_pairs_hook = None
        parse_float = parse_constant = float
        parse_int = int

    def load(data):
        return make_scanner(Plain)(data.decode("utf-8", "surrogatepass"), 0)[0]

    def refuse(value):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")

    def dump(value, allow_nan, separators, default=refuse):
        item, key = separators
        encode = make_encoder({}, default, encode_basestring_ascii, None, key, item, False, False, allow_nan)
        return "".join(encode(value, 0))


class Installed:
    """Has what is installed looked for once nothing else is found: few tools need it, and every start would wait for it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        sys.meta_path.remove(cls)
        try:
            import importlib.util
            import site

            site.main()
            return importlib.util.find_spec(name)
        except Exception:
            Blocked.raised = None
            return None


sys.meta_path.append(Installed)


class Blocked(PermissionError):
    """A guarantee forbids it."""

    raised = None

    def __init__(self, *said):
        super().__init__(*said)
        Blocked.raised = self


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
EVENTS = {
    "no_filesystem_write": (
        "os.mkdir os.remove os.rename os.rmdir os.link os.symlink os.truncate os.chmod os.chown os.utime "
        "os.setxattr os.removexattr sqlite3.connect"
    ),
    "no_filesystem_read": "os.listdir os.scandir sqlite3.connect",
    "no_network": "socket.connect socket.sendto socket.sendmsg socket.getaddrinfo socket.gethostbyname",
    "no_subprocess": "subprocess.Popen os.system os.fork os.forkpty os.posix_spawn os.exec os.spawn pty.spawn",
    "no_env_write": "os.putenv os.unsetenv ctypes.dlopen",
}
LIBRARY = tuple({os.path.dirname(os.__file__), sys.prefix, sys.base_prefix, "/usr/lib", "/lib"})


def guard(guarantees):
    """Refuses in words what the operating system refuses without: the tool's author learns why."""
    events = {event: name for name in guarantees for event in EVENTS.get(name, "").split()}

    def is_importing():
        frame = sys._getframe(2)
        return frame is not None and "importlib" in frame.f_code.co_filename

    def hook(event, args):
        if event == "open":
            path, mode, flags = args
            path = os.fsdecode(path) if isinstance(path, (str, bytes)) else ""
            writes = flags & WRITES if isinstance(flags, int) else False
            if writes and "no_filesystem_write" in guarantees and path != os.devnull:
                raise Blocked(f"no_filesystem_write forbids to open {path!r} for writing")
            is_module = path.endswith((".py", ".pyc", ".so")) or path.startswith(LIBRARY)
            if not writes and "no_filesystem_read" in guarantees and path and not is_module:
                raise Blocked(f"no_filesystem_read forbids to open {path!r}")
        elif event in events:
            if event in ("os.listdir", "os.scandir") and is_importing():
                return
            if event.startswith("socket.") and isinstance(args[-1], (str, bytes)) and event == "socket.connect":
                return
            raise Blocked(f"{events[event]} forbids {event}")

    sys.addaudithook(hook)


class Refusing(type(os.environ)):
    """An environment that says so when it is read."""

    def __getitem__(self, name):
        raise Blocked(f"no_env_read forbids to read {name}")

    def get(self, name, default=None):
        return self[name]


def is_blocked(error):
    """Whether a guarantee is behind an exception that the tool did not catch."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Blocked):
            return True
        inner = getattr(error, "reason", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return False


def failure(error, guarantees):
    try:
        message = str(error)
    except Exception:
        message = ""
    said = {"type": type(error).__name__, "message": message}
    if guarantees and (is_blocked(error) or isinstance(error, PermissionError)):
        said["reason_code"] = "guarantee_blocked"
    return {"ok": False, "error": said, "exit": isinstance(error, SystemExit)}


def imported(module):
    """The module. `importlib` would import `warnings`, too."""
    __import__(module)
    return sys.modules[module]


def run(order):
    guarantees = order["guarantees"]
    if guarantees:
        if "no_env_read" in guarantees and order["env_read"] == "refuse":
            os.environ.__class__ = Refusing
        guard(guarantees)
    module, _, function = order["entry"].partition(":")
    try:
        tool = imported(module)
        for part in function.split("."):
            tool = getattr(tool, part)
        if not callable(tool):
            raise TypeError(f"{order['entry']} is no function")
        result = tool(order["payload"])
        if Blocked.raised and order["caught"] == "failure":
            return failure(Blocked.raised, guarantees)
        return {"ok": True, "result": result}
    except BaseException as error:
        return failure(error, guarantees)


def text(outcome):
    return dump(outcome, allow_nan=False, separators=(",", ":")).encode("ascii")


def end():
    """Does what the tool left for the end of Python. All that Python does besides takes as long as a call."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except Exception:
        pass
    os._exit(0)


def main():
    outcome = run(load(ORDER))
    if os.getpid() != OWNER:
        os._exit(0)
    try:
        data = text(outcome)
    except BaseException as error:
        data = text({"ok": False, "error": {"type": type(error).__name__, "message": str(error)}})
    data = b"%d\n" % len(data) + data
    while data:
        data = data[os.write(CHANNEL, data):]
    end()


main()
