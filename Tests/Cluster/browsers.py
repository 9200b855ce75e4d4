"""Two real browsers in a room, and robots that send and receive real media in rooms of their own."""

import json
import os
import subprocess
import threading
import time

from cluster import PAGE, ROOT
from programs import Failed, require, until


def longest_gap(times, since):
    """The longest time between two of these times, from `since` until now."""
    marks = [since, *(at for at in list(times) if at > since), time.time()]
    return max(later - earlier for earlier, later in zip(marks, marks[1:]))


class Browsers:
    """Two Chromium browsers that talk in a room, at whatever node HAProxy gives them. Use it in a `with` statement."""

    def __init__(self, cluster, room):
        # What each page has counted and shows, and when its counts have grown.
        self._counts, self._pages, self._grown = {}, {}, {}
        # When each page was asked.
        self._samples = {}
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browsers.mjs")
        self._log = open(os.path.join(cluster.folder, "browsers.log"), "wb")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "node", script, cluster.host, PAGE, str(cluster.port), room], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True,
            env={**os.environ, "TMPDIR": cluster.folder})  # So that the profiles are deleted with everything else.
        threading.Thread(target=self._read, daemon=True).start()
        try:
            until(self._require_both, 60)
        except Failed as problem:
            self.close()
            raise Failed(f"The two browsers do not see and hear each other: {problem}") from None

    def _require_both(self):
        if self._process.poll() is not None:
            with open(self._log.name, errors="replace") as log:
                raise Failed(f"browsers.mjs ended with status {self._process.returncode}\n{log.read()[-1000:]}")
        require(len(self._grown) == 2, self._state())

    def _state(self):
        """What the pages show and have counted, for the reader of a failed run."""
        return "; ".join(
            f"{person} has received (frames, audio packets) {self._counts.get(person)}, and the page shows {page!r}"
            for person, page in sorted(list(self._pages.items()))) or "no page has opened"

    def _read(self):
        for line in self._process.stdout:
            sample = json.loads(line)
            self._log.write(line)
            self._log.flush()
            self._pages[sample["person"]] = sample["status"]
            self._samples.setdefault(sample["person"], []).append(sample["at"] / 1000)
            person, now = sample["person"], (sample["frames"], sample["sound"])
            before = self._counts.get(person, (0, 0))
            self._counts[person] = now
            # The counts of new connections begin at zero. Both have to arrive: frames and sound.
            if all(new > old or 0 < new < old for new, old in zip(now, before)):
                self._grown.setdefault(person, []).append(sample["at"] / 1000)

    def silences(self, since):
        """The longest time without frames or sound since then (`time.time()`), of each browser, until now."""
        return [longest_gap(times, since) for times in self._grown.values()]

    def blindness(self, since):
        """The longest time since then in which a page did not say what it has received: a busy machine, not a fault."""
        return max(longest_gap(times, since) for times in self._samples.values())

    def await_return(self, since, seconds=60):
        """Waits until both have received media for a second after a silence. Returns the longest silence since then."""
        def require_return():
            silence = max(self.silences(since))
            require(silence > 1, f"neither browser has been without media for a second (longest {silence:.2f} s)")
            now = time.time()
            flows = all(len([at for at in list(times) if at > now - 1]) >= 5 for times in self._grown.values())
            require(flows, f"the browsers' media has not come back. {self._state()}")
            return silence
        return until(require_return, seconds)

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Robots:
    """Three robots in a room of one node, all of which send to each other and count what is lost, for `seconds`."""

    def __init__(self, cluster, node, seconds):
        self.node = node
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", cluster.executable, "bench", "sfu", "--rooms", "1", "--size", "3", "--by-name",
             "--seconds", str(seconds), "--json", "--server", f"http://{node.machine.address}:{node.port}", "--data-dir",
             node.data],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def result(self):
        """What they counted, when they have ended."""
        output, errors = self._process.communicate(timeout=120)
        try:
            return json.loads(output)
        except ValueError:
            raise Failed(f"The robots ended with status {self._process.returncode}: {errors[-500:]}") from None
