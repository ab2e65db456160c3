"""What each match costs of what was measured. Pure: the parts add up to the whole.

The scraper's own process is shared by all matches alike. A browser's tree is shared by its open pages alike: a page
that is a match's own goes to that match, any other page to all matches of the source.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from longstop.fetching.browser.base import BrowserCensus
from longstop.model.resources import MatchCost, Resources


class Watched(Struct, frozen=True, kw_only=True):
    """A match, and the address of its page; empty where its site has none to open."""

    match_id: int
    source: str
    page: str = ""


def match_costs(
    matches: Sequence[Watched], census: Sequence[BrowserCensus], used: Resources | None
) -> dict[int, MatchCost]:
    """Return the cost of each match; what is not known of its scraper or its browser is `None`, never 0."""
    if used is None or not matches:
        return {}
    memory = [each.usage.pss_bytes if each.usage else None for each in census]
    bytes_of = _added(matches, census, memory, used.own_pss_bytes)
    percent_of = _added(matches, census, _cpu_of(census, used), used.own_cpu_percent)
    return {
        each.match_id: MatchCost(
            pss_bytes=None if (held := bytes_of[each.match_id]) is None else round(held),
            cpu_percent=None if (spent := percent_of[each.match_id]) is None else round(spent, 2),
        )
        for each in matches
    }


def _cpu_of(census: Sequence[BrowserCensus], used: Resources) -> list[float | None]:
    """Share what the browsers have spent between them by their open pages; nobody measures a page."""
    if used.cpu_percent is None or used.own_cpu_percent is None:
        return [None] * len(census)
    spent = max(0.0, used.cpu_percent - used.own_cpu_percent)
    pages = [max(1, each.pages) for each in census]
    return [spent * count / sum(pages) for count in pages]


def _added(
    matches: Sequence[Watched], census: Sequence[BrowserCensus], amounts: Sequence[float | None], own: float | None
) -> dict[int, float | None]:
    """Add up what each match has of its scraper and of the browsers of its source."""
    sums: dict[int, float | None] = {each.match_id: None if own is None else own / len(matches) for each in matches}
    for browser, amount in zip(census, amounts, strict=True):
        users = [each for each in matches if each.source == browser.source]
        shares = _of_browser(browser, amount, users)
        for each in users:
            before, share = sums[each.match_id], shares.get(each.match_id)
            sums[each.match_id] = None if before is None or share is None else before + share
    return sums


def _of_browser(browser: BrowserCensus, amount: float | None, users: Sequence[Watched]) -> Mapping[int, float]:
    """Share one browser between its users; none of them has a share of what is not known."""
    if amount is None:
        return {}
    shares = dict.fromkeys((each.match_id for each in users), 0.0)
    pages = browser.addresses or ("",)
    for address in pages:
        owners = _owners(address, users) or [each.match_id for each in users]
        for match_id in owners:
            shares[match_id] += amount / len(pages) / len(owners)
    return shares


def _owners(address: str, users: Iterable[Watched]) -> list[int]:
    return [each.match_id for each in users if each.page and each.page.partition("?")[0] == address]
