"""Snapshots: the complete state of a match at one time, with an increasing sequence number and a checksum."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from longstop.errors import ImpossibleObservation

#: How many snapshots of a match are kept.
SNAPSHOTS_KEPT = 5


class Provenance(Struct, frozen=True, kw_only=True):
    """The source of a field, its confidence, and its time."""

    source: str
    confidence: float
    at: datetime


class Snapshot(Struct, frozen=True, kw_only=True):
    """A normalised payload as stored; the bytes are served unchanged."""

    match_id: int
    sequence: int
    checksum: str
    payload: bytes
    provenance: dict[str, Provenance]
    created_at: datetime
    scraper_id: str
    #: From the arrival of the page to the start of the commit.
    update_latency_ms: int
    data_source: str = "scraper"


def canonical(payload: Mapping[str, Any] | Struct) -> bytes:
    """Return the canonical encoding of a payload: sorted keys, no whitespace, UTF-8.

    A record is validated against its own schema: what does not fit is never stored or served.
    """
    body = msgspec.json.encode(payload, order="sorted")
    if isinstance(payload, Struct):
        try:
            msgspec.json.decode(body, type=type(payload))
        except msgspec.ValidationError as error:
            raise ImpossibleObservation(f"the payload does not fit its schema: {error}") from error
    return body


def checksum(canonical_payload: bytes) -> str:
    return sha256(canonical_payload).hexdigest()


def delta(old: Snapshot | None, new: Snapshot) -> dict[str, Any]:
    """Return the top-level fields that differ; removed ones are listed under `_removed`."""
    current: dict[str, Any] = msgspec.json.decode(new.payload)
    if old is None:
        return {"_diff_type": "initial", "_sequence_delta": new.sequence, **current}
    previous: dict[str, Any] = msgspec.json.decode(old.payload)
    absent = object()
    changed = {name: value for name, value in current.items() if previous.get(name, absent) != value}
    return {
        "_diff_type": "update",
        "_sequence_delta": new.sequence - old.sequence,
        "_removed": sorted(previous.keys() - current.keys()),
        **changed,
    }
