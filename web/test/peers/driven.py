"""A peer that a test drives: commands come as lines of JSON on standard input, and what happens goes out the same way.

The peer ends with its standard input, so that none outlives the test.
"""

import json
import os
import sys
import threading

_writing = threading.Lock()


def tell(event, *args):
    """Writes one line: what happened, and with what."""
    with _writing:
        print(json.dumps({"event": event, "args": args}), flush=True)


def obey(commands):
    """Carries out commands in a thread of their own, each `{"do": name, …}` by the function of that name."""

    def run():
        for line in sys.stdin:
            command = json.loads(line)
            try:
                commands[command.pop("do")](**command)
            except Exception as error:  # the test decides what a failure means
                tell("fault", f"{type(error).__name__}: {error}")
        # No goodbye: nobody is left to hear of it.
        os._exit(0)

    threading.Thread(target=run, daemon=True).start()
