"""How large answers usually are, and when one is so odd that the session is not trusted with the next. Pure.

A block page with a good status is far smaller than the data; a page for people in its place is far larger. The site
itself may change too, so only the first odd answer in a row costs a session: what another session gets again is the
site's own doing, and becomes the usual.
"""

import re
from collections import deque
from statistics import median
from urllib.parse import urlsplit

#: So many answers of an address are remembered, and so many are needed to know what is usual.
KEPT, NEEDED = 20, 5
#: How many times smaller or larger than usual is odd.
ODD_FACTOR = 10
#: Below this a small answer says nothing: an empty list is one, too.
LEAST_USUAL_BYTES = 2_000
_MOST_ADDRESSES = 256
#: A part of a path that names one match or player among others.
_ID = re.compile(r"\d\w*|[0-9A-Z]*\d[0-9A-Z]*")


class Sizes:
    """The sizes of one source's answers, by address without ids."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[int]] = {}
        #: Addresses of which the latest answer was odd.
        self._odd: set[str] = set()

    def is_odd(self, url: str, size: int) -> bool:
        """Note the size of a good answer; return whether it is the first odd one in a row."""
        address = without_ids(url)
        seen = self._seen.get(address)
        if seen is None:
            if len(self._seen) >= _MOST_ADDRESSES:
                return False
            seen = self._seen[address] = deque(maxlen=KEPT)
        is_odd = len(seen) >= NEEDED and _is_far_from(median(seen), size)
        is_first = is_odd and address not in self._odd
        if is_odd:
            self._odd.add(address)
        else:
            self._odd.discard(address)
        seen.append(size)
        return is_first


def without_ids(url: str) -> str:
    """Return host and path of an address, with a star for each part that is an id."""
    parts = urlsplit(url)
    return parts.netloc + "/".join("*" if _ID.fullmatch(part) else part for part in parts.path.split("/"))


def _is_far_from(usual: float, size: int) -> bool:
    return usual >= LEAST_USUAL_BYTES and not usual / ODD_FACTOR <= size <= usual * ODD_FACTOR
