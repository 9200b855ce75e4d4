"""Calls methods of the real server SDKs for Python, `opentok` and `vonage-video`, and reports what they return or raise.

    sdk_caller.py

Commands: opentok (url, key, secret, name) and vonage (host, application, key, name) create a client; methods lists the
methods of a client; call (client, method, args, more) calls one. `{"enum": "opentok.Roles.moderator"}` and
`{"model": "vonage_video.models.TokenOptions", "members": {}}` are replaced by these objects in arguments.
Events: created, methods, returned (the value, and the last response), raised (the names of the exception's classes, its
message, and the last response). A response is its status, its content type and its body.
"""

import importlib
import inspect
import threading
import warnings
from enum import Enum

import requests

from driven import obey, tell

warnings.simplefilter("ignore")
clients = {}
response = None
_send = requests.Session.send


def send(session, request, **options):
    """Sends a request and keeps the response, because some exceptions do not contain it."""
    global response
    received = _send(session, request, **options)
    response = {
        "status": received.status_code, "type": received.headers.get("content-type"), "body": received.text}
    return received


requests.Session.send = send


def find(path):
    module, *names = path.rsplit(".", 2 if path.startswith("opentok.") else 1)
    value = importlib.import_module(module)
    for name in names:
        value = getattr(value, name)
    return value


def read(value):
    if isinstance(value, list):
        return [read(item) for item in value]
    if isinstance(value, dict) and "enum" in value:
        return find(value["enum"])
    if isinstance(value, dict) and "model" in value:
        return find(value["model"])(**read(value["members"]))
    if isinstance(value, dict):
        return {name: read(member) for name, member in value.items()}
    return value


def write(value):
    """Returns what JSON can say about a returned value."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, requests.Response):
        return {"class": "Response", "status": value.status_code}
    if isinstance(value, (list, tuple)):
        return [write(item) for item in value]
    if isinstance(value, dict):
        return {str(name): write(member) for name, member in value.items() if name != "sdk"}
    if hasattr(value, "__dict__"):
        return {"class": type(value).__name__, **write(vars(value))}
    return value


def opentok(url, key, secret, name):
    clients[name] = importlib.import_module("opentok").Client(key, secret, api_url=url)
    tell("created")


def vonage(host, application, key, name):
    http = importlib.import_module("vonage_http_client")
    auth = http.Auth(application_id=application, private_key=key)
    client = http.HttpClient(auth, http_client_options={"video_host": host})
    clients[name] = importlib.import_module("vonage_video").Video(client)
    tell("created")


def methods(client):
    tell("methods", [
        name for name, _ in inspect.getmembers(type(clients[client]), inspect.isfunction) if not name.startswith("_")])


def call(client, method, args=(), more=None):
    global response
    response = None
    try:
        value = getattr(clients[client], method)(*read(list(args)), **read(more or {}))
    except Exception as error:
        tell("raised", [kind.__name__ for kind in type(error).__mro__[:-2]], str(error), response)
    else:
        tell("returned", write(value), response)


obey({"opentok": opentok, "vonage": vonage, "methods": methods, "call": call})
# The commands are obeyed in another thread, which ends the process.
threading.Event().wait()
