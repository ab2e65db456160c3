"""Counts the network traffic of one page, and reports the bytes to the proxy meter."""

from collections.abc import Callable, Mapping

from msgspec import Struct

#: Of headers that Chromium adds after it has reported a request.
_ADDED_BYTES = 250


class NetworkCount(Struct, kw_only=True):
    """The traffic of a page so far; the bytes are Chromium's estimate."""

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
    """Return the approximate size of a request, with cookies and the headers that the browser adds."""
    return len(method) + len(url) + sum(len(name) + len(value) + 4 for name, value in headers.items()) + _ADDED_BYTES


class _Transfer(Struct, kw_only=True):
    """One response that is being received."""

    #: Bytes already counted.
    counted: int = 0
    #: Decoded bytes whose size on the wire Chromium has not reported yet.
    uncounted: int = 0


class Traffic:
    """All traffic of one page, whichever load it belongs to."""

    def __init__(self, max_uncounted_bytes: int) -> None:
        self.count = NetworkCount()
        #: Called with the bytes on the wire, both ways, as Chromium reports them.
        self.on_bytes: Callable[[int], None] | None = None
        #: Responses, and their decoded bytes, since the page was loaded: the browser keeps a part of each in memory.
        self.responses = 0
        self.decoded_bytes = 0
        self._max_uncounted_bytes = max_uncounted_bytes
        self._transfers: dict[str, _Transfer] = {}

    def add_bytes(self, size: int) -> None:
        """Report bytes on the wire to the meter."""
        if self.on_bytes is not None and size:
            self.on_bytes(size)

    def received(self, request_id: str, size: int, wire_bytes: int) -> None:
        """Count a part of a response: decoded, and on the wire if Chromium reports that."""
        self.decoded_bytes += size
        transfer = self._transfers.setdefault(request_id, _Transfer())
        if wire_bytes > 0:
            # It may include parts that came earlier.
            transfer.uncounted = 0
            self._count(transfer, wire_bytes)
            return
        transfer.uncounted += size
        if transfer.uncounted > self._max_uncounted_bytes:
            # Chromium reports the size of a document only at its end, which may never come.
            self._count_rest(transfer)

    def finished(self, request_id: str, wire_bytes: int) -> None:
        """Count what was not counted yet of a complete response."""
        self.responses += 1
        transfer = self._transfers.pop(request_id, _Transfer())
        self._count(transfer, max(0, wire_bytes - transfer.counted))

    def failed(self, request_id: str) -> None:
        """Count what was received of an interrupted response."""
        self.responses += 1
        self._count_rest(self._transfers.pop(request_id, _Transfer()))

    def settle(self) -> None:
        """Count what was received so far of all responses: there may be no later report."""
        for transfer in self._transfers.values():
            self._count_rest(transfer)

    def reset(self) -> None:
        """Drop the unfinished responses: the page loads another document."""
        self.settle()
        self._transfers.clear()
        self.responses = self.decoded_bytes = 0

    def _count(self, transfer: _Transfer, wire_bytes: int) -> None:
        transfer.counted += wire_bytes
        self.count.bytes_in_est += wire_bytes
        self.add_bytes(wire_bytes)

    def _count_rest(self, transfer: _Transfer) -> None:
        rest, transfer.uncounted = transfer.uncounted, 0
        self._count(transfer, rest)
