"""What a page costs on the network: counted as it flows, told to the meter, and settled when nobody tells the rest."""

from collections.abc import Callable, Mapping

from msgspec import Struct

#: Of headers that Chromium adds after it has told of a request.
_ADDED_BYTES = 250


class NetworkCount(Struct, kw_only=True):
    """What a page has cost on the network so far; the bytes are what Chromium estimates."""

    requests_total: int = 0
    requests_blocked: int = 0
    bytes_in_est: int = 0
    captured: int = 0

    def since(self, earlier: "NetworkCount") -> "NetworkCount":
        return NetworkCount(
            requests_total=self.requests_total - earlier.requests_total,
            requests_blocked=self.requests_blocked - earlier.requests_blocked,
            bytes_in_est=self.bytes_in_est - earlier.bytes_in_est,
            captured=self.captured - earlier.captured,
        )


def request_bytes(method: str, url: str, headers: Mapping[str, str]) -> int:
    """Return about how many bytes a question is, cookies and what the browser adds to each included."""
    return len(method) + len(url) + sum(len(name) + len(value) + 4 for name, value in headers.items()) + _ADDED_BYTES


class _Flow(Struct, kw_only=True):
    """What has come of one answer so far."""

    #: Bytes that were told.
    told: int = 0
    #: Decoded bytes of which Chromium has not said yet what they were on the wire.
    untold: int = 0


class Flows:
    """All that flows to and from one page, whoever wants it, and whichever load it belongs to."""

    def __init__(self, max_untold_bytes: int) -> None:
        self.count = NetworkCount()
        #: Called with what went over the wire, both ways, as far as Chromium tells.
        self.on_bytes: Callable[[int], None] | None = None
        #: Answers, and decoded bytes of them, since the page was loaded: the browser keeps something of each.
        self.answers = 0
        self.decoded_bytes = 0
        self._max_untold_bytes = max_untold_bytes
        self._flows: dict[str, _Flow] = {}

    def went(self, size: int) -> None:
        """Tell of bytes that went by."""
        if self.on_bytes is not None and size:
            self.on_bytes(size)

    def came(self, request_id: str, size: int, wire_bytes: int) -> None:
        """Count a part of an answer: decoded, and on the wire if Chromium says so."""
        self.decoded_bytes += size
        flow = self._flows.setdefault(request_id, _Flow())
        if wire_bytes > 0:
            # It may stand for parts that came before it, too.
            flow.untold = 0
            self._tell(flow, wire_bytes)
            return
        flow.untold += size
        if flow.untold > self._max_untold_bytes:
            # Of a page itself Chromium tells at its end only, which may never come.
            self._tell_rest(flow)

    def finished(self, request_id: str, wire_bytes: int) -> None:
        """Tell what was not told of an answer that is whole."""
        self.answers += 1
        flow = self._flows.pop(request_id, _Flow())
        self._tell(flow, max(0, wire_bytes - flow.told))

    def failed(self, request_id: str) -> None:
        """Tell what has come of an answer that broke off."""
        self.answers += 1
        self._tell_rest(self._flows.pop(request_id, _Flow()))

    def settle(self) -> None:
        """Tell what has come of all that is under way: nobody may tell it later."""
        for flow in self._flows.values():
            self._tell_rest(flow)

    def start_anew(self) -> None:
        """Forget what is under way: the page goes elsewhere."""
        self.settle()
        self._flows.clear()
        self.answers = self.decoded_bytes = 0

    def _tell(self, flow: _Flow, wire_bytes: int) -> None:
        flow.told += wire_bytes
        self.count.bytes_in_est += wire_bytes
        self.went(wire_bytes)

    def _tell_rest(self, flow: _Flow) -> None:
        rest, flow.untold = flow.untold, 0
        self._tell(flow, rest)
