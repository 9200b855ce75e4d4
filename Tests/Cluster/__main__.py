"""Starts a cluster to try it (`scripts/cluster`), or lets its parts fail and looks at what people notice (`scripts/cluster-test`)."""

import sys
import time
import traceback

import cluster
import scenarios
from visitor import Refused


class Report:
    def __init__(self, title):
        self.broken = 0
        print(f"\n{title}", flush=True)

    def figure(self, name, value):
        print(f"   {name}: {value}", flush=True)

    def check(self, holds, expectation):
        print(f"   {'held  ' if holds else 'BROKEN'}  {expectation}", flush=True)
        self.broken += not holds


def run(scenario, running):
    """Runs one scenario. Returns whether everything held."""
    report = Report(f"{scenario.__name__}: {scenario.__doc__}")
    start = time.monotonic()
    try:
        scenario(running, report)
    except Refused as refusal:
        report.check(False, f"the scenario runs to its end; it stopped with {refusal}")
        traceback.print_exc(limit=-3, file=sys.stdout)
    except Exception as problem:  # A mistake in one scenario must not hide the results of the others.
        traceback.print_exc(file=sys.stdout)
        report.check(False, f"the scenario runs to its end; it stopped with {problem!r}")
    print(f"   {'failed' if report.broken else 'passed'} in {time.monotonic() - start:.1f} s", flush=True)
    return not report.broken


def main(executable, names):
    known = {scenario.__name__: scenario for scenario in scenarios.ALL}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"There is no scenario {', '.join(unknown)}. The names are: {', '.join(known)}")
    passed = failed = 0
    for name in names or known:
        # Each has a cluster of its own, so that none begins in the state that another has left.
        with cluster.Cluster(executable, 3) as running:
            if run(known[name], running):
                passed += 1
            else:
                failed += 1
                for node in running.nodes:
                    print(f"--- {node.name}\n" + "\n".join(node.program.text().splitlines()[-15:]))
    print(f"\n{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    try:
        if sys.argv[2:3] == ["try"]:
            cluster.run(sys.argv[1], sys.argv[3:])
        else:
            main(sys.argv[1], sys.argv[2:])
    except (cluster.Missing, cluster.Failed) as problem:
        sys.exit(str(problem))
