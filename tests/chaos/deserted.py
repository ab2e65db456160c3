"""A whole Longstop whose site does not answer: for what has nothing to do with any match."""

import os
from pathlib import Path

from tests.chaos.running import own_environment

SOURCES = """\
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    adapter_class: crex
    hosts: ["127.0.0.1:9"]
    allow_private_addresses: true
    permission: nobody is there
    metadata: {api_url: 'http://127.0.0.1:9', content_url: 'http://127.0.0.1:9', names_url: 'http://127.0.0.1:9'}
"""


def deserted(folder: Path) -> dict[str, str]:
    """Return its environment; the data go into the folder."""
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
