"""A service that keeps one text per path: PUT and GET. Knows nothing of tokens.

GET /-/quiet answers 204 when nobody else is connected: nothing can land any more.
"""

import http.server
import socketserver
import sys
import threading

texts = {}
connected = 0
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write
    disable_nagle_algorithm = True

    def setup(self):
        global connected
        with lock:
            connected += 1
        super().setup()

    def finish(self):
        global connected
        super().finish()
        with lock:
            connected -= 1

    def answer(self, status, body=b""):
        self.send_response_only(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/-/quiet":
            with lock:
                quiet = connected == 1
            return self.answer(204 if quiet else 503)
        return self.answer(200, texts.get(self.path, b""))

    def do_PUT(self):
        texts[self.path] = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.answer(204)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
