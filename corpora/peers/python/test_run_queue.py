"""Tests of the example worker and adapter: python3 -m unittest test_run_queue (in this folder, a second)."""

import os
import pathlib
import signal
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True

import run_queue_jobs  # noqa: E402
from run_queue_worker import Worker  # noqa: E402

JOB = b'{"goal_id":"g"}'


class RunQueue(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.queue = pathlib.Path(folder.name)
        # What is pending for a worker must not end the tests.
        old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, old)
        self.addCleanup(signal.sigtimedwait, {signal.SIGTERM}, 0)
        self.worker = Worker(str(self.queue), "/bin/true")

    def names(self, folder):
        return sorted(path.name for path in (self.queue / folder).rglob("*") if not path.is_dir())

    def put(self, place, text=JOB):
        (self.queue / place).parent.mkdir(exist_ok=True)
        (self.queue / place).write_bytes(text)

    def test_jobs_end_in_done_or_failed(self):
        self.put("inbox/a.json")
        self.put("inbox/b.json", b"{")
        self.put("inbox/c.txt")
        self.worker.work(once=True)
        self.assertEqual([len(self.names(folder)) for folder in ("inbox", "processing", "done", "failed")], [1, 0, 1, 2])

    def test_what_is_no_file_blocks_nothing(self):
        dead = self.queue / "processing" / "dead"
        dead.mkdir()
        os.mkfifo(dead / "fifo.json")
        (dead / "folder.json").mkdir()
        self.put("processing/dead/link.json")
        self.put("inbox/a.json")
        self.worker.work(once=True)
        self.assertEqual(len(self.names("done")), 2)
        self.assertEqual(self.names("processing"), [])

    def test_sigterm_that_comes_while_a_job_is_read_lets_it_not_begin(self):
        self.put("inbox/a.json")
        read = Worker.read

        def read_and_be_asked(path):
            os.kill(os.getpid(), signal.SIGTERM)
            return read(path)

        with unittest.mock.patch.object(Worker, "read", staticmethod(read_and_be_asked)):
            self.worker.work(once=False)
        self.assertEqual((self.names("processing"), self.names("done")), (["a.json"], []))

    def test_a_job_that_cannot_be_moved_ends_no_worker(self):
        (self.queue / "done").rmdir()
        (self.queue / "done").write_bytes(b"")
        self.put("inbox/a.json")

        waits = []

        def mend(seconds):
            if seconds:
                waits.append(seconds)
                (self.queue / "done").unlink()

        with unittest.mock.patch.object(self.worker, "wait", mend):
            self.worker.work(once=True)
        self.assertEqual((len(waits), len(self.names("done"))), (1, 1))

    def test_what_others_hold_is_looked_at_again(self):
        other = Worker(str(self.queue), "/bin/true")
        os.rename(self.write_to_inbox(), os.path.join(os.fsdecode(other.own), "a.json"))

        def die(_):
            if other.locks:
                os.close(other.locks.pop(other.own))

        with unittest.mock.patch.object(self.worker, "wait", die):
            self.worker.work(once=True)
        self.assertEqual(len(self.names("done")), 1)

    def write_to_inbox(self):
        return self.queue / "inbox" / run_queue_jobs.put(str(self.queue), JOB)

    def test_a_job_that_is_in_the_inbox_is_not_refused(self):
        sync = os.fsync
        calls = []

        def fail_at_folders(file):
            calls.append(file)
            if len(calls) > 1:
                raise OSError("an error")
            sync(file)

        with unittest.mock.patch.object(os, "fsync", fail_at_folders):
            self.write_to_inbox()
        self.assertEqual((len(calls), len(self.names("inbox"))), (2, 1))


if __name__ == "__main__":
    unittest.main()
