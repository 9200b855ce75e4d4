"""A short line that is long in JSON pushes everything else out of a chat."""

from client import Client
from server import Server

TITLE = "one line does not delete everybody's chat and files"

# Each takes one byte in UTF-8 and six in JSON: 2,731 take more than the 16 KiB that a chat may have.
LINES = {"2,731 control characters": "\u0001" * 2731, "4,096 control characters": "\u001f" * 4096,
         "4,096 quotation marks": '"' * 4096}
TEXTS = ["Good morning", "The plan is in the file", "See you at ten"]


def run(report):
    with Server() as server:
        for title, text in LINES.items():
            attack(report, server, title, text)


def attack(report, server, title, text):
    name = f"Team {len(text)} {ord(text[0])}"
    host, guest = Client(server, "127.0.0.2"), Client(server, "127.0.0.3")
    host.join(name, "Ada")
    guest.join(name, "Ben")
    file, status = server.upload(host, "plan.txt", b"The plan\n")
    for line in TEXTS:
        host.request("room.say", text=line)
    report.sent(f"{len(TEXTS)} lines and a file ({status}) by the host, then {title} by a guest: "
                f"{guest.attempt('room.say', text=text)}")
    newcomer = Client(server, "127.0.0.4")
    chat = newcomer.join(name, "Cleo")["chat"]
    kept = [line["text"] for line in chat if line["text"] in TEXTS]
    report.check(kept == TEXTS, f"a newcomer sees the host's lines: {len(kept)} of {len(TEXTS)}")
    status, content = server.download(newcomer, file)
    report.check(status == 200 and content == b"The plan\n", f"the file can be downloaded: {status}")
    report.check(guest.find("room.fileRemoved") is None, "nobody is notified that the file was deleted")
