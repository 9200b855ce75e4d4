"""Measures two servers at the same time, for Benchmarks/pair, which describes it.

    pair.py media FOLDER OLD NEW LOAD SLICES SECONDS SUBSCRIBERS PACKETS
    pair.py calls FOLDER OLD NEW LOAD SLICES RINGS
"""

import re
import statistics
import subprocess
import sys
import time

import servers

# Seconds from the first packets to the first slice.
WARM_UP = 3
# Pairs of people who call.
PAIRS = 100


def row(what, old, new, digits=2):
    """Prints the medians of two servers, and the ratio of each slice."""
    ratios = [after / before for before, after in zip(old, new)]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    figures = [f"{statistics.median(figures):.{digits}f}" for figures in (old, new)]
    ratio = f"{statistics.mean(ratios):.3f} ± {error:.3f} | {statistics.median(ratios):.3f}"
    print(f"| {what} | {figures[0]} | {figures[1]} | {ratio} |")


def head(slices):
    print(f"\nMedians of {slices} slices. NEW ÷ OLD is the mean of the ratios of the slices ± its standard error, and their "
          "median.\n")
    print("| what | OLD | NEW | NEW ÷ OLD | median |\n| --- | --- | --- | --- | --- |")


def media(pair, load, slices, seconds, subscribers, packets):
    slices, seconds = int(slices), float(seconds)
    for server in pair:
        server.send_media(load, subscribers, int(slices * seconds + servers.START + 30), *(
            [] if packets == "uniform" else ["--packets", packets]))
    time.sleep(WARM_UP)
    total, loops = ([], []), ([], [])
    before, then = [server.threads() for server in pair], time.monotonic()
    for _ in range(slices):
        time.sleep(seconds)
        after, now = [server.threads() for server in pair], time.monotonic()
        for server in pair:
            server.require_load()
        for index in range(2):
            total[index].append(servers.used(before[index], after[index]) / (now - then))
            loops[index].append(servers.used_by_media(before[index], after[index]) / (now - then))
        before, then = after, now
    head(slices)
    row("CPU time of all threads, ms per second", *total)
    row("CPU time of the media loops, ms per second", *loops)


def calls(pair, load, slices, rings):
    costs, delays = ([], []), ([], [])
    for number in range(int(slices)):
        runs = []
        try:
            # The second one starts later, so they take turns.
            for index in (0, 1) if number % 2 else (1, 0):
                runs.append((index, subprocess.Popen(
                    [load, "calls", pair[index].port, str(pair[index].process.pid), str(PAIRS), rings],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)))
            for index, run in runs:
                text = run.communicate(timeout=servers.START + int(rings) / 10)[0]
                cost = re.search(r"\((\d+) µs each\)", text)
                delay = re.search(r"median of \d+ \| ([0-9.]+) ms", text)
                if run.returncode != 0 or not cost or not delay:
                    raise servers.Failure(f"The load has failed:\n{text[-2000:]}")
                costs[index].append(float(cost.group(1)))
                delays[index].append(float(delay.group(1)))
        except subprocess.TimeoutExpired as error:
            raise servers.Failure("The calls took too long. Lower CONFAB_BENCH_RINGS.") from error
        finally:
            for _, run in runs:
                servers.end(run)
    head(len(costs[0]))
    row("CPU time of a ring, µs", *costs, digits=0)
    row("from `call.start` to `call.incoming`, one at a time, ms", *delays)


def main(what, folder, old, new, load, *sizes):
    pair = []
    try:
        for name, executable in (("old", old), ("new", new)):
            pair.append(servers.Server(executable, f"{folder}/{name}"))
        {"media": media, "calls": calls}[what](pair, load, *sizes)
    finally:
        for server in pair:
            server.stop()


servers.run(lambda: main(*sys.argv[1:]))
