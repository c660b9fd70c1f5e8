"""Ends a child with everything that came from it, on Linux as far as its /proc and its subreapers allow."""

import os
import signal
import subprocess
import time

KILL_S_MAX = 0.8  # the contracts give one second
POLL_S = 0.005
PR_SET_CHILD_SUBREAPER = 36


def open_pidfd(pid):
    """A descriptor that becomes readable when the process exits, where the system has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def has_exited(pid):
    """Whether our child has exited. It stays a zombie, so that its process group id cannot be reused yet."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def adopt_orphans():
    """Makes descendants whose parent dies our children (Linux), so that leaving the group hides nobody."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # best effort: the process group is killed anyway


def living_processes():
    """All processes as {pid: (parent pid, state letter)}; empty where there is no /proc."""
    processes = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return processes
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue  # ended meanwhile
            processes[int(name)] = (int(parent), state)
    return processes


def descendants(root):
    """Our descendants as [(pid, parent pid, is a zombie)]: the child, its children, and adopted orphans."""
    processes = living_processes()
    children = {}
    for pid, (parent, state) in processes.items():
        children.setdefault(parent, []).append((pid, parent, state in (b"Z", b"X")))
    found, parents = [], [root]
    while parents:
        for child in children.get(parents.pop(), []):
            found.append(child)
            parents.append(child[0])
    return found


def kill_tree(process):
    """Ends the child, its process group, and every descendant, in the group or not; returns when they are gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    kill_descendants(unreaped=process.pid)
    try:
        process.wait(KILL_S_MAX)  # reaped last: until here its process group id is not given to anybody else
    except subprocess.TimeoutExpired:
        pass  # the system does not let it go


def kill_descendants(unreaped=None):
    """Kills and reaps every descendant, in rounds: one may fork, or lose its parent, between the look and the kill.

    One that was seen dead may have forked after the look began: only a round that finds nobody is the last.
    """
    deadline = time.monotonic() + KILL_S_MAX
    again = True
    while again and time.monotonic() < deadline:
        again = alive = False
        for pid, parent, zombie in descendants(os.getpid()):
            if not zombie:
                again = alive = True
                kill(pid)
            elif parent == os.getpid() and pid != unreaped:
                again = True
                os.waitpid(pid, os.WNOHANG)
        if alive:
            time.sleep(POLL_S)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
