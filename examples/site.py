"""A local stand-in for the fictitious site: serves the bodies in `pages/` on 127.0.0.1:8765."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = Path(__file__).parent / "pages"
LISTING = (PAGES / "list.json").read_bytes()
BODIES = {
    "/api/matches": LISTING,
    "/api/matches/7": (PAGES / "live.json").read_bytes(),
    "/api/matches/7/goals": (PAGES / "incidents.json").read_bytes(),
    "/api/matches/8": json.dumps(json.loads(LISTING)[1]).encode(),
    "/api/matches/8/goals": b"[]",
}


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = BODIES.get(self.path, b"")
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8765), Site).serve_forever()
