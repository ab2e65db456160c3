"""The contract suite for the example source: `scripts/test examples/test_kickoff.py`."""

from pathlib import Path

from examples.kickoff import KickoffSource
from longstop.model.source_queries_and_answers import Query
from longstop.sources.base import SourceConfig
from longstop.testing import check_source

PAGES = Path(__file__).parent / "pages"
CONFIG = SourceConfig(domain_id="kickoff", adapter_class="examples.kickoff:KickoffSource", hosts=("kickoff.example",))
MATCH_URLS = {"https://kickoff.example/match/7": "7"}
BODIES = [
    (Query(resource="list"), (PAGES / "list.json").read_bytes()),
    (Query(resource="live", source_id="7"), (PAGES / "live.json").read_bytes()),
    (Query(resource="live", source_id="7"), (PAGES / "live_ended.json").read_bytes()),
    (Query(resource="incidents", source_id="7"), (PAGES / "incidents.json").read_bytes()),
]


def test_kickoff_keeps_the_contract() -> None:
    check_source(KickoffSource(CONFIG), BODIES, config=CONFIG, match_urls=MATCH_URLS)
