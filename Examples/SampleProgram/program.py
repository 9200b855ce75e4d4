#!/usr/bin/env python3
"""Shows how a program judges samples of cameras for Confab (docs/moderation.md).

It is no classifier: it looks only at how large an image is. A dark or uniform image compresses to few bytes, so it is
judged `warn`; everything else is `ok`. Replace `judge` by your own model.

    confab serve, with this in confab.yaml:

    moderation:
      program: [/opt/confab/program.py]

`--verdicts blur end` returns these verdicts in turn instead, to try what they do.
"""
import argparse
import base64
import itertools
import json
import sys


def judge(jpeg: bytes) -> tuple[str, str]:
    """Returns a verdict and a sentence for the person, which may be empty."""
    if len(jpeg) < 1500:
        return "warn", "Your partner can hardly see you. Turn on a light."
    return "ok", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verdicts", nargs="+", help="verdicts to return in turn")
    options = parser.parse_args()
    fixed = itertools.cycle(options.verdicts) if options.verdicts else None

    # The end of the input means that the server stops.
    for line in sys.stdin:
        question = json.loads(line)
        verdict, text = (next(fixed), "") if fixed else judge(base64.b64decode(question["jpeg"]))
        answer = {"id": question["id"], "verdict": verdict}
        if text:
            answer["text"] = text
        # One line per question, and flushed: the server waits for it.
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
