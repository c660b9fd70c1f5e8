#!/usr/bin/env python3
"""Times of what CI does, by step, test binary and test.

    times.py run BINARY ARGUMENT…    runs a test binary as cargo's `runner`, and notes its times
    times.py step NAME SECONDS       notes how long a step took
    times.py alone SECONDS           runs the slowest tests again one by one, for their processor time, as long as this lasts;
                                     those that are ignored by default are left out
    times.py table                   prints the tables and writes target/ci/times.json

Notes are JSON lines in the file that $CI_TIMES names. Wall and processor times are in seconds; a processor time holds that
of every child that was waited for.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

SLOWEST = 30
NOTES = Path(os.environ.get("CI_TIMES", "target/ci/times.ndjson"))
TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED)(?: <([0-9.]+)s>)?$")


def note(**what):
    NOTES.parent.mkdir(parents=True, exist_ok=True)
    with NOTES.open("a") as file:
        file.write(json.dumps(what) + "\n")


def notes():
    lines = NOTES.read_text().splitlines() if NOTES.exists() else []
    return [json.loads(line) for line in lines]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reports_times(binary):
    """Tells the harness of rustc, which can report the time of a test, from others."""
    usage = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=60)
    return "--report-time" in usage.stdout


def libtest_environment():
    # Read by the test harness while it runs: a stable toolchain reports times all the same.
    return {**os.environ, "RUSTC_BOOTSTRAP": "1"}


def run(binary, *arguments):
    extra = ["-Z", "unstable-options", "--report-time"] if reports_times(binary) else []
    began, used, tests = time.monotonic(), processor_seconds(), []
    child = subprocess.Popen(
        [binary, *arguments, *extra], env=libtest_environment(), stdout=subprocess.PIPE, text=True, errors="replace"
    )
    for line in child.stdout:
        print(line, end="", flush=True)
        if told := TEST.match(line.rstrip()):
            tests.append({"name": told[1], "wall": float(told[3] or 0)})
    status = child.wait()
    note(
        binary=str(binary),
        folder=os.getcwd(),
        arguments=arguments,
        wall=time.monotonic() - began,
        processor=processor_seconds() - used,
        tests=tests,
    )
    return status if status >= 0 else 128 - status


def slowest(told):
    tests = [
        {**{key: it[key] for key in ("binary", "folder", "arguments")}, **test}
        for it in told
        if "binary" in it
        for test in it["tests"]
    ]
    return sorted(tests, key=lambda test: -test["wall"])[:SLOWEST]


def alone(seconds):
    end = time.monotonic() + seconds
    for test in slowest(notes()):
        began, used = time.monotonic(), processor_seconds()
        if began >= end:
            break
        if "--ignored" in test["arguments"]:
            continue
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [test["binary"], "--exact", test["name"]]
        subprocess.run(command, cwd=test["folder"], check=False, **quiet)
        note(alone=test["name"], wall=time.monotonic() - began, processor=processor_seconds() - used)


def short(binary):
    return re.sub(r"-[0-9a-f]{16}$", "", Path(binary).name)


def table():
    told = notes()
    steps = [it for it in told if "step" in it]
    binaries = [it for it in told if "binary" in it]
    by_itself = {it["alone"]: it for it in told if "alone" in it}
    tests = [{**test, "alone": by_itself.get(test["name"])} for test in slowest(told)]
    print("\nsteps                                                                  wall s")
    for it in steps:
        print(f"  {it['step']:<66.66} {it['wall']:>8.1f}")
    print("\ntest binaries                                               tests     wall s  processor s")
    for it in sorted(binaries, key=lambda it: -it["wall"]):
        print(f"  {short(it['binary']):<56.56} {len(it['tests']):>6} {it['wall']:>10.1f} {it['processor']:>12.1f}")
    print(f"\nthe {len(tests)} slowest tests                                  wall s; by itself: wall s  processor s")
    for test in tests:
        own = test["alone"]
        own = f"{own['wall']:>16.2f} {own['processor']:>12.2f}" if own else ""
        print(f"  {short(test['binary'])[:12]:<12} {test['name']:<60.60} {test['wall']:>7.2f} {own}")
    out = Path("target/ci/times.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"steps": steps, "binaries": binaries, "slowest": tests}, indent=1) + "\n")


def main():
    match sys.argv[1:]:
        case ["run", binary, *arguments]:
            return run(binary, *arguments)
        case ["step", name, seconds]:
            return note(step=name, wall=float(seconds))
        case ["alone", seconds]:
            return alone(float(seconds))
        case ["table"]:
            return table()
        case _:
            print(__doc__, file=sys.stderr)
            return 2


sys.exit(main())
