"""A Longstop whose site is unreachable, for tests that need no matches."""

import os
from pathlib import Path

from tests.chaos.live_deployment import own_environment

SOURCES = """\
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    adapter_class: crex
    hosts: ["127.0.0.1:9"]
    allow_private_addresses: true
    permission: the port is closed
    metadata: {api_url: 'http://127.0.0.1:9', content_url: 'http://127.0.0.1:9', names_url: 'http://127.0.0.1:9'}
"""


def unreachable_site(folder: Path) -> dict[str, str]:
    """Return the environment of the processes; data go into the folder."""
    (folder / "sources.yaml").write_text(SOURCES)
    with own_environment():
        inherited = dict(os.environ)
    return {
        **inherited,
        "LONGSTOP_DATA": str(folder / "data"),
        "LONGSTOP_SOURCES": str(folder / "sources.yaml"),
        "LONGSTOP_API_PORT": "0",
        "ENABLE_PROMETHEUS_METRICS": "false",
    }
