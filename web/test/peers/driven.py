"""A peer controlled by a test: JSON commands, one per line, on standard input, and JSON events on standard output.

The peer ends with its standard input, so that none outlives the test.
"""

import json
import os
import sys
import threading

_writing = threading.Lock()


def tell(event, *args):
    """Writes one event as a line: its name and arguments."""
    with _writing:
        print(json.dumps({"event": event, "args": args}), flush=True)


def obey(commands):
    """Runs commands in a separate thread. `{"do": name, …}` calls the function with that name."""

    def run():
        for line in sys.stdin:
            command = json.loads(line)
            try:
                commands[command.pop("do")](**command)
            except Exception as error:  # The test decides what a failure means.
                tell("fault", f"{type(error).__name__}: {error}")
        # Exit without notifying the other end, because the test is gone.
        os._exit(0)

    threading.Thread(target=run, daemon=True).start()
