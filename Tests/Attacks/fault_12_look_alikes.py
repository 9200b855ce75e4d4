"""Names that look like the name of another room."""

from client import Client, Refused
from server import Server

TITLE = "names that look alike do not open separate rooms"

NAME = "Clinic 7"
LOOK_ALIKES = {
    "a zero-width joiner (U+200D)": "Clinic\u200d 7",
    "a zero-width non-joiner (U+200C)": "Clinic\u200c 7",
    "a Hangul choseong filler (U+115F)": "Clinic\u115f 7",
    "a Hangul jungseong filler (U+1160)": "Clinic\u1160 7",
    "a Hangul filler (U+3164)": "Clinic 7\u3164",
    "a variation selector (U+FE0F)": "Clinic 7\ufe0f",
    "a combining grapheme joiner (U+034F)": "Clin\u034fic 7",
    "a tag character (U+E0037)": "Clinic 7\U000e0037",
    "a space in front": " Clinic 7",
    "a space at the end": "Clinic 7 ",
    "two spaces": "Clinic  7",
}
# Names that people do write, and that must stay possible.
USUAL = ["Café ☕️", "👩‍👩‍👧 family", "می‌خواهم", "회의실"]


def run(report):
    with Server() as server:
        owner = Client(server, "127.0.0.2")
        session = owner.join(NAME, "Ada")["sessionId"]
        report.sent(f"a room “{NAME}”, and joins with {len(LOOK_ALIKES)} names that look like its name")
        for title, name in LOOK_ALIKES.items():
            answer, other = join(server, name)
            where = "the same room" if other == session else f"another room ({answer})" if other else answer
            report.check(other in (None, session), f"{title} opens no other room: {where}")
        for name in USUAL:
            answer, _ = join(server, name)
            report.check(answer == "room.joined", f"“{name}” is still a name: {answer}")


def join(server, name):
    """Returns the answer, and the session of the room if the newcomer came in."""
    client = Client(server, "127.0.0.3")
    try:
        answer = client.join(name, "Ben")
        return answer["type"], answer.get("sessionId")
    except Refused as refusal:
        return refusal.code, None
    finally:
        client.close()
