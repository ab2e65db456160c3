"""A small local site with good and hostile pages, which records its requests."""

import asyncio
import base64
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

_HEAVY = b"x" * 40_000
_POLLING = """<!doctype html><html><head><link rel=stylesheet href=/big.css><link rel=stylesheet href=/styled></head>
<body><img src=/a.png><img src=/picture><video src=/film.mp4></video><script src=/ads/ad.js></script>
<script src=http://localhost:{port}/foreign.js></script><iframe src=http://localhost:{port}/frame></iframe>
<script>document.cookie = 'visited=yes; path=/';
const ask = () => fetch('/api/state?match={match}&t=' + Math.random(), {{headers: {{'X-Page': 'yes'}}}});
ask(); setInterval(ask, 300);</script></body></html>"""
_FORETELLING = """<!doctype html><html><head><link rel=prefetch href=http://localhost:{bait}/ahead>
<link rel=preload as=script href=http://localhost:{bait}/ahead.js></head><body><p id=host></p>{foretelling}
<script>setTimeout(() => fetch('/api/state?match={match}'), 1500);</script></body></html>"""
_MADE = "const made = document.createElement('script'); made.type = 'SpeculationRules'; made.textContent = '{rules}';"
#: Where a page may contain speculation rules, by which Chromium loads pages ahead of time.
RULES = {
    "static": "<script type=speculationrules>{rules}</script>",
    "dynamic": f"<script>{_MADE} document.body.append(made);</script>",
    "deep": f"<script>{_MADE} const p = document.createElement('p'); p.append(made); document.body.append(p);</script>",
    "typed-late": f"<script>{_MADE} made.type = 'x'; document.body.append(made); setTimeout(() => {{{{"
    " made.textContent = ''; made.type = 'speculationrules'; made.textContent = '{rules}'; }}, 200);</script>",
    "shadow": f"<script>{_MADE} host.attachShadow({{{{mode: 'closed'}}}}).append(made);</script>",
    "shadow-late": f"<script>{_MADE} const p = document.createElement('p');"
    " const root = p.attachShadow({{mode: 'open'}}); document.body.append(p);"
    " setTimeout(() => root.append(made), 200);</script>",
    "declared": "<p><template shadowrootmode=open><script type=speculationrules>{rules}</script></template></p>",
}
#: Rules in a closed shadow root declared in the HTML are not visible to any script.
UNSEEN = "declared-closed"
_ALL_RULES = {**RULES, UNSEEN: RULES["declared"].replace("shadowrootmode=open", "shadowrootmode=closed")}
#: Response headers with the same effect.
_FORETOLD = """Link: <https://localhost:{bait}>; rel=preconnect, <http://localhost:{bait}>; rel=dns-prefetch\r
Link: <http://localhost:{bait}/ahead>; rel=prefetch, <http://localhost:{bait}/ahead.js>; rel=preload; as=script\r
Link: <http://localhost:{bait}/ahead.js>; rel=modulepreload, </ahead>; rel=prefetch\r
Speculation-Rules: "/rules.json", "http://localhost:{bait}/rules.json"\r
"""
_SCRIPTS = {
    "spin": "fetch('/api/state?match={match}'); for (;;) {{}}",
    "spin-later": "fetch('/api/state?match={match}').then(() => setTimeout(() => {{ const last = new XMLHttpRequest();"
    "last.open('GET', '/spins', false); last.send(); for (;;) {{}} }}, 300));",
    "spin-at-once": "for (;;) {{}}",
    "leak": "const kept = []; setInterval(() => kept.push(new Uint8Array(1e6).fill(1)), 100);"
    "fetch('/api/state?match={match}');",
    "dialogs": "alert('hello'); confirm('sure?'); onbeforeunload = () => 'stay'; fetch('/api/state?match={match}');",
    "popups": "for (let n = 0; n < 5; n++) open('/popup?' + n); fetch('/api/state?match={match}');",
    "download": "const a = document.createElement('a'); a.href = '/file'; a.download = 'x'; document.body.append(a);"
    "a.click(); fetch('/api/state?match={match}');",
    "plain": "fetch('/api/state?match={match}');",
    "drawing": "const draw = async () => {{ const state = await (await fetch('/api/state?match={match}')).json();"
    "document.title = state.match; document.body.append('seen ' + state.number + ';'); setTimeout(draw, 300); }};"
    "draw();",
    "endless": "fetch('/api/endless');",
    "endless-aside": "fetch('/api/endless'); setTimeout(() => fetch('/api/state?match={match}'), 700);",
    "unanswered": "document.body.append('not yet'); fetch('/hang');",
    "large": "document.body.append(new Comment('x'.repeat(6e6)));",
    "huge-drawn": "document.body.append(new Comment('x'.repeat(3e8)));",
    "foretold": "setTimeout(() => fetch('/api/state?match={match}'), 1500);",
    "late": "setTimeout(() => fetch('/api/state?match={match}'), 1500);",
    "never": "",
    "twice": "fetch('/api/state?match={match}'); setTimeout(() => fetch('/api/state?match={match}'), 500);",
    "posting": "const post = () => fetch('/api/state', {{method: 'POST', body: '{{\"match\": \"its own\"}}'}}); post();"
    "setInterval(post, 100); fetch('/api/state?match={match}');",
    "other": "fetch('/api/state?match=another'); setTimeout(() => fetch('/api/state?match={match}'), 500);",
    "foreign-call": "fetch('http://localhost:{port}/api/stolen').catch(() => 0); fetch('/api/state?match={match}');",
    "socket": "new WebSocket('ws://127.0.0.1:{port}/push'); fetch('/api/state?match={match}');",
    "foreign-socket": "new WebSocket('ws://localhost:{port}/push').onerror = () => fetch('/api/state?match={match}');",
    "workers": "const tried = (make) => {{ try {{ make(); }} catch {{}} }};"
    "tried(() => new Worker('/worker.js')); tried(() => new SharedWorker('/worker.js'));"
    "tried(() => new Worker(URL.createObjectURL(new Blob([\"fetch('http://127.0.0.1:{port}/by-worker')\"]))));"
    "setTimeout(() => fetch('/api/state?match={match}'), 700);",
    "worker": "navigator.serviceWorker && navigator.serviceWorker.register('/sw.js').catch(() => 0);"
    "fetch('/api/state?match={match}');",
    "rtc": "try {{ const c = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{udp}'}}, {{username: 'a',"
    "credential: 'b', urls: ['turn:127.0.0.1:{udp}?transport=udp', 'turn:localhost:{port}?transport=tcp']}}]}});"
    "c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o)); }} catch (e) {{}}"
    "setTimeout(() => fetch('/api/state?match={match}'), 700);",
}
_CHALLENGE = "<!doctype html><html><title>Just a moment...</title><form id=challenge-form></form></html>"


class Site:
    """What tests see and control of the site."""

    def __init__(self) -> None:
        self.port = 0
        self.udp_port = 9
        #: How often each path was requested, and the host names of the requests.
        self.asked: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        self.headers: dict[str, dict[str, str]] = {}
        self.bytes_out = 0
        #: The body that came with the last request.
        self.said = ""
        self.sockets = 0
        #: Status and body of the state endpoint, in place of the usual ones.
        self.state: tuple[int, str] | None = None
        #: How many connections were made to it.
        self.connections = 0
        #: A port that nothing may connect to, and how often something did.
        self.bait_port = 0
        self.baited = 0
        #: Paths that respond with a refusal.
        self.refused: set[str] = set()
        #: Paths whose responses start and never finish.
        self.stuck: set[str] = set()
        #: Responses for the match "held" wait for it.
        self.released = asyncio.Event()
        #: How many endless responses are running.
        self.pouring = 0

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.authority}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._converse(reader, writer)
        finally:
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            self.connections += 1
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in head[1:] if line)}
                target = urlsplit(head[0].split()[1])
                self.asked[target.path] += 1
                self.hosts[headers.get("host", "")] += 1
                self.headers[target.path] = headers
                self.said = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
                if target.path == "/push":
                    await self._push(headers, writer)
                    break
                if target.path == "/api/endless":
                    await self._pour(writer)
                    break
                if target.path == "/hang":
                    await asyncio.sleep(60)
                if target.path == "/api/state" and "match=held" in target.query:
                    await self.released.wait()
                await self._answer(target.path, parse_qs(target.query), writer)

    async def _answer(self, path: str, query: dict[str, list[str]], writer: asyncio.StreamWriter) -> None:
        status, kind, body = self._content(path, query)
        extra = f"Location: http://localhost:{self.port}/page/polling\r\n" if path == "/redirect" else ""
        if path == "/file":
            extra = "Content-Disposition: attachment; filename=x\r\n"
        if path == "/page/foretold":
            extra = _FORETOLD.format(bait=self.bait_port)
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        if path in self.stuck:
            writer.write(head.encode() + body[:100])
            await asyncio.sleep(60)
        writer.write(head.encode() + body)
        self.bytes_out += len(head) + len(body)
        await writer.drain()

    def _content(self, path: str, query: dict[str, list[str]]) -> tuple[int, str, bytes]:
        match = query.get("match", ["1"])[0]
        if path in self.refused:
            return 403, "text/html", b"<html>no</html>"
        if path == "/api/state":
            number = self.asked[path]
            if self.state is not None:
                return self.state[0], "text/html", self.state[1].encode()
            state = {"match": match, "number": number} | ({"said": json.loads(self.said)} if self.said else {})
            return 200, "application/json", json.dumps(state).encode()
        if path == "/api/huge":
            return 200, "application/json", b'"' + b"x" * 6_000_000 + b'"'
        if path.startswith("/page/"):
            name = path.removeprefix("/page/")
            if name == "challenge":
                return 200, "text/html", _CHALLENGE.encode()
            if name == "huge":
                return 200, "text/html", b"<html>" + b"x" * 6_000_000
            if name.isdigit():
                return int(name), "text/html", b"<html>no</html>"
            values = {"match": match, "port": self.port, "udp": self.udp_port, "bait": self.bait_port}
            if name == "polling":
                return 200, "text/html", _POLLING.format(**values).encode()
            if name in _ALL_RULES:
                foretelling = _ALL_RULES[name].format(rules=self._rules())
                return 200, "text/html", _FORETELLING.format(foretelling=foretelling, **values).encode()
            script = _SCRIPTS[name].format(**values)
            return 200, "text/html", f"<!doctype html><html><body><script>{script}</script></body></html>".encode()
        if path == "/rules.json":
            return 200, "application/speculationrules+json", self._rules().encode()
        if path == "/redirect":
            return 302, "text/html", b""
        if path == "/static":
            return 200, "text/html; charset=utf-8", "<!doctype html><p>grüße</p>".encode()
        if path.endswith((".png", ".css", ".mp4")) or path in ("/picture", "/styled"):
            kinds = {"/picture": "image/png", "/styled": "text/css"}
            return 200, kinds.get(path, "application/octet-stream"), _HEAVY
        if path == "/worker.js":
            return 200, "text/javascript", b"fetch('/by-worker');"
        return 200, "text/javascript", b""

    def _rules(self) -> str:
        ahead = [{"urls": [f"http://localhost:{self.bait_port}/ahead", "/ahead"], "eagerness": "immediate"}]
        return json.dumps({"prefetch": ahead, "prerender": ahead})

    def bite(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.baited += 1
        writer.close()

    async def _pour(self, writer: asyncio.StreamWriter) -> None:
        """Send an endless response until the client disconnects."""
        self.pouring += 1
        try:
            writer.write(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n\r\n")
            while True:
                writer.write(_HEAVY)
                await writer.drain()
                await asyncio.sleep(0.003)
        finally:
            self.pouring -= 1

    async def _push(self, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        """Implement just enough WebSocket to push a frame every 100 ms."""
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()  # noqa: S324 - the protocol says so
        writer.write(
            b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        self.sockets += 1
        for _ in range(100):
            writer.write(b"\x81\x02hi")
            await writer.drain()
            await asyncio.sleep(0.1)


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(site.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    bait = await asyncio.start_server(site.bite, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    site.bait_port = bait.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        bait.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the next iteration of the loop
