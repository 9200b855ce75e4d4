"""Starts a cluster to try it (`scripts/cluster`), lets its parts fail and prints what people notice (`scripts/cluster-test`), or measures
what rooms on several nodes cost (`Benchmarks/cluster`)."""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback

import cluster
import measure
import rows
from machines import Network
from programs import Failed, Late, Missing, until
from visitor import Refused


class Report:
    """Prints what a row measures, and counts what did not hold. `options`: the arguments of the command."""

    def __init__(self, row, options):
        self.broken, self.skipped, self.options = 0, None, options
        self._part = ""
        print(f"\n{row.__name__}: {row.__doc__}", flush=True)

    def parts(self, parts):
        """Iterates over the parts of a row, tuples that begin with a name. What is printed during a part begins with its name."""
        for part in parts:
            self._part = f"{part[0]}: "
            yield part
        self._part = ""

    def figure(self, name, value):
        print(f"   {self._part}{name}: {value}", flush=True)

    def check(self, holds, expectation):
        print(f"   {'held  ' if holds else 'BROKEN'}  {self._part}{expectation}", flush=True)
        self.broken += not holds

    def measure(self, goal, probe, limit, since=None):
        """Waits until the probe holds, prints how long that took, and checks that it was less than `limit` seconds. `since` is a time
        of `time.monotonic()`; by default it is now."""
        start = time.monotonic() if since is None else since
        try:
            until(probe, limit + 20)  # Longer than the limit, so that what is late has a figure, too.
        except Late as late:
            self.check(False, f"{goal} within {limit} s ({late})")
            return
        seconds = time.monotonic() - start
        self.figure(f"seconds until {goal}", round(seconds, 2))
        self.check(seconds < limit, f"{goal} within {limit} s")

    def skip(self, reason):
        self.skipped = reason
        print(f"   skipped: {reason}", flush=True)


def run(row, running, options):
    """Runs one row. Returns its report."""
    report = Report(row, options)
    start = time.monotonic()
    try:
        row(running, report)
    except (Refused, Failed) as problem:
        report.check(False, f"the row runs to its end; it stopped with: {problem}")
        traceback.print_exc(limit=-3, file=sys.stdout)
    except Exception as problem:  # A mistake in one row must not hide the results of the others.
        traceback.print_exc(file=sys.stdout)
        report.check(False, f"the row runs to its end; it stopped with {problem!r}")
    if not report.skipped:
        print(f"   {'failed' if report.broken else 'passed'} in {time.monotonic() - start:.1f} s", flush=True)
    return report


def keep_logs(folder, running, name):
    kept = os.path.join(folder, name)
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(kept)
    for file in os.listdir(running.folder):
        if file.endswith(".log"):
            shutil.copy(os.path.join(running.folder, file), kept)
    print(f"   The logs are in {kept}.", flush=True)


def stop_at_once(running):
    """Lets signals end the test without waiting for the visitors' threads. As the first process of its namespace, this one takes
    all others with it. It would ignore SIGTERM otherwise."""
    def stop(*_):
        running.abandon()
        print("Stopped", flush=True)
        os._exit(130)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def test(options):
    known = {row.__name__: row for row in rows.ALL}
    if options.list:
        print("\n".join(f"{name}: {row.__doc__}" for name, row in known.items()))
        return
    unknown = [name for name in options.only if name not in known]
    if unknown:
        sys.exit(f"There is no row {', '.join(unknown)}. The names are: {', '.join(known)}")
    reports = []
    for name in options.only or known:
        if getattr(known[name], "needs_release", False) and not os.environ.get("CONFAB_BINARY"):
            reports.append(Report(known[name], options))
            reports[-1].skip("it needs a release build: CONFAB_BINARY")
            continue
        needs_previous = getattr(known[name], "needs_previous", False)
        if needs_previous and not options.previous:
            reports.append(Report(known[name], options))
            reports[-1].skip("it needs the executable of the previous release: --previous PATH")
            continue
        # Each has a cluster of its own, so that none begins in the state that another has left.
        executable = options.previous if needs_previous else options.executable
        has_relays = getattr(known[name], "needs_relays", False)
        with cluster.Cluster(executable, 3, network=Network(), has_relays=has_relays) as running:
            stop_at_once(running)
            reports.append(run(known[name], running, options))
            if options.logs and reports[-1].broken:
                keep_logs(options.logs, running, name)
    failed = sum(report.broken > 0 for report in reports)
    skipped = sum(report.skipped is not None for report in reports)
    print(f"\n{len(reports) - failed - skipped} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/cluster-test", description="Lets the parts of a cluster fail.")
    parser.add_argument("executable", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one row; can be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of all rows")
    parser.add_argument("--all", action="store_true", help="with the outages in full length, such as 7 minutes of Redis")
    parser.add_argument("--previous", default=os.environ.get("CONFAB_PREVIOUS"), metavar="PATH",
                        help="executable of the previous release, for the upgrade (default: CONFAB_PREVIOUS)")
    parser.add_argument("--logs", metavar="FOLDER", help="keeps the logs of rows that fail")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        if sys.argv[2:3] == ["try"]:
            cluster.run(sys.argv[1], sys.argv[3:])
        elif sys.argv[2:3] == ["measure"]:
            measure.run(sys.argv[1])
        else:
            # Until the first cluster runs. As the first process of its namespace, this one would ignore the signal otherwise.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            test(arguments())
    except (Missing, Failed) as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit("Stopped")
