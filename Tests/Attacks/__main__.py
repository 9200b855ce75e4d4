"""Attacks a server from outside. `scripts/attacks` runs this; see there for the arguments.

Each file `fault_*.py` is one attack, with a title and a function `run(report)`. A new file is found by its name. `sockets.py`
speaks HTTP and WebSocket, `client.py` the protocol of Confab, and `server.py` starts servers. They are written from `protocol/`
and share nothing with the server or its SDKs, so that a mistake there cannot hide itself. Only the standard library is used.
"""

import importlib
import os
import signal
import socket
import sys
import time
import traceback

import server
from client import Refused
from report import Impossible, Report, Skipped

# In the order of their numbers. The name is that of the file, without its number.
FAULTS = sorted(
    name[:-3] for name in os.listdir(os.path.dirname(os.path.abspath(__file__)))
    if name.startswith("fault_") and name.endswith(".py"))


def short_name(fault):
    return fault.split("_", 2)[2].replace("_", "-")


def run(fault):
    """Runs one attack. Returns `passed`, `failed` or `skipped`."""
    module = importlib.import_module(fault)
    number = int(fault.split("_")[1])
    report = Report(number, f"{short_name(fault)}: {module.TITLE}")
    start = time.monotonic()
    try:
        module.run(report)
    except Skipped as reason:
        print(f"   skipped: {reason}", flush=True)
        return "skipped"
    except (Impossible, Refused) as problem:
        report.check(False, f"the attack runs to its end; it stopped at {where(problem)}: {problem}")
    except Exception as problem:  # A mistake in the attack must not hide the results of the others.
        traceback.print_exc(file=sys.stdout)
        report.check(False, f"the attack runs to its end; it stopped with {problem!r}")
    result = "failed" if report.broken else "passed"
    print(f"   {result} in {time.monotonic() - start:.1f} s", flush=True)
    return result


def where(problem):
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if os.path.basename(frame.filename).startswith("fault_")]
    frame = (ours or frames)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno}"


def main(arguments):
    if not arguments or not os.access(arguments[0], os.X_OK):
        print(f"usage: attacks EXECUTABLE [NAME…]; names: {', '.join(map(short_name, FAULTS))}", file=sys.stderr)
        return 2
    server.executable, names = os.path.abspath(arguments[0]), arguments[1:]
    unknown = [name for name in names if name not in map(short_name, FAULTS)]
    if unknown:
        print(f"no such attack: {', '.join(unknown)}. There are: {', '.join(map(short_name, FAULTS))}", file=sys.stderr)
        return 2
    try:
        socket.create_server(("127.0.0.2", 0)).close()
    except OSError:
        print("The attacks come from addresses such as 127.0.0.2, which only Linux has without configuration.", file=sys.stderr)
        return 2
    # As an exception, so that every server is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"attacking {server.executable}")
    results = {fault: run(fault) for fault in FAULTS if not names or short_name(fault) in names}
    counts = {result: sum(value == result for value in results.values()) for result in ("passed", "failed", "skipped")}
    print()
    for fault, result in results.items():
        if result != "passed":
            print(f"{result}: {short_name(fault)}")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
