#!/usr/bin/env python3
"""A worker: takes jobs out of the inbox of a queue, runs a program for each, and moves them to done or failed.

    run_queue_worker.py QUEUE RUNNER [--once]

A worker owns a folder below processing and holds its lock for as long as it lives. A folder whose lock is free belonged
to a worker that is dead; whoever takes the lock has its jobs. SIGTERM lets the job in flight finish.
"""

import errno
import fcntl
import itertools
import os
import secrets
import signal
import stat
import subprocess
import sys

import run_queue_jobs
from run_queue_jobs import JOB_BYTES_MAX, NAME_BYTES_MAX

POLL_S = 0.25
# A process that a dead worker was about to start has its lock until its program runs: looks, and the time between two.
HELD_LOOKS, HELD_S = 10, 0.05
SUFFIX, REASON = b".json", b".reason.txt"


class Worker:
    def __init__(self, queue, runner):
        self.queue, self.runner = os.fsencode(os.path.abspath(queue)), os.path.abspath(runner)
        self.id, self.numbers = secrets.token_hex(8), itertools.count(1)
        self.locks, self.stopping, self.others_hold = {}, False, False
        for folder in (b"inbox", b"processing", b"done", b"failed"):
            os.makedirs(self.path(folder), exist_ok=True)
        self.own = self.new_folder()

    def path(self, *names):
        return os.path.join(self.queue, *names)

    def part(self):
        return f"~{self.id}-{next(self.numbers)}".encode()

    def new_folder(self):
        while True:
            folder = self.path(b"processing", b"worker" + self.part())
            os.makedirs(folder)
            if self.hold(folder):
                return folder

    def hold(self, folder):
        """Locks a folder; False where another holds it or took it away meanwhile."""
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.lstat(folder)):
                self.locks[folder] = lock
                return True
        except OSError:
            pass
        os.close(lock)
        return False

    def work(self, once):
        looks = 0
        while not self.stopping and signal.SIGTERM not in signal.sigpending():
            job = self.next_job()
            if job is not None:
                looks = 0
                self.run(*job)
            elif once and (looks == HELD_LOOKS or not self.others_hold):
                break
            else:
                looks += 1
                self.wait(HELD_S if once else POLL_S)
        try:
            os.rmdir(self.own)
        except OSError:
            pass

    def wait(self, seconds):
        """SIGTERM is blocked but here, so that none is lost between the look and the wait."""
        self.stopping |= signal.sigtimedwait({signal.SIGTERM}, seconds) is not None

    def next_job(self):
        """The folder and the name of a job that is ours, or None."""
        self.others_hold = False
        for name in self.names(self.path(b"processing")):
            folder = self.path(b"processing", name)
            if folder == self.own or not os.path.isdir(folder) or os.path.islink(folder):
                if folder != self.own and self.is_job(self.path(b"processing"), name) and self.take(b"processing", name):
                    return self.own, name
            elif folder in self.locks or self.hold(folder):
                for left in self.names(folder):
                    return folder, left
                self.give_up(folder)
            else:
                self.others_hold = True
        if not os.path.isdir(self.own):
            try:
                self.own = self.new_folder()
            except OSError as error:
                print(f"a folder of its own cannot be made: {error}", file=sys.stderr)
                return None
        for name in self.names(self.path(b"inbox")):
            if self.is_job(self.path(b"inbox"), name) and self.take(b"inbox", name):
                return self.own, name
        return None

    @staticmethod
    def names(folder):
        try:
            return sorted(os.listdir(folder))
        except OSError:
            return []

    @staticmethod
    def is_job(folder, name):
        if not name.endswith(SUFFIX) or name.startswith(b"."):
            return False
        try:
            return stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode)
        except OSError:
            return False

    def take(self, folder, name):
        # Our own folder is empty: one job at a time.
        try:
            os.rename(self.path(folder, name), os.path.join(self.own, name))
            return True
        except OSError:
            return False

    def give_up(self, folder):
        try:
            os.rmdir(folder)
            os.close(self.locks.pop(folder))
        except OSError:
            pass

    @staticmethod
    def read(path):
        # What is no file is not waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            return file.read(JOB_BYTES_MAX + 1)

    def run(self, folder, name):
        path = os.path.join(folder, name)
        try:
            run_queue_jobs.parse(self.read(path))
        except run_queue_jobs.Malformed as error:
            return self.leave(folder, name, f"it is malformed: {error}")
        except OSError as error:
            return self.leave(folder, name, f"it cannot be read: {error}")
        if signal.SIGTERM in signal.sigpending():
            # It came while the job was read: the next worker takes the job over.
            return
        nothing = subprocess.DEVNULL
        try:
            program = subprocess.Popen(
                [self.runner, path], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM}),
            )
        except OSError as error:
            return self.leave(folder, name, f"its program was not started: {error}")
        # It is not reaped before its group is ended, so that its number still names that.
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        status = program.wait()
        self.wait(0)
        self.leave(folder, name, None if status == 0 else f"its program ended with status {status}")

    def leave(self, folder, name, why):
        """Moves a job to done, or to failed where there is a reason. Its new name is ours alone: a rename replaces."""
        to = b"done" if why is None else b"failed"
        stem = name.removesuffix(SUFFIX)
        part = self.part()
        stem = stem[: NAME_BYTES_MAX - len(part) - len(REASON)] + part
        while True:
            try:
                os.makedirs(self.path(to), exist_ok=True)
                os.rename(os.path.join(folder, name), self.path(to, stem + SUFFIX))
                break
            except OSError as error:
                if not os.path.lexists(os.path.join(folder, name)):
                    return
                # It is not run again for that.
                print(f"a job cannot be moved: {error}", file=sys.stderr)
                self.wait(POLL_S)
                if self.stopping:
                    return
        if why is not None:
            try:
                with open(self.path(to, stem + REASON), "x", encoding="utf-8", errors="replace") as file:
                    print(why, file=file)
            except OSError as error:
                print(f"the reason cannot be written: {error}", file=sys.stderr)


def main(arguments):
    words = [argument for argument in arguments if argument != "--once"]
    if len(words) != 2:
        print("usage: run_queue_worker.py QUEUE RUNNER [--once]", file=sys.stderr)
        return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    Worker(*words).work("--once" in arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
