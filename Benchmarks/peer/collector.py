"""Takes traces over OTLP/HTTP, and prints how many spans and bytes there were when it is ended. Usage: collector.py PORT"""

import http.server
import json
import signal
import sys

spans = 0
size = 0


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global spans, size
        body = self.rfile.read(int(self.headers["Content-Length"]))
        size += len(body)
        for resource in json.loads(body)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                spans += len(scope["spans"])
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def end(*_):
    print(f"{spans} spans, {size} bytes", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Collector).serve_forever()
