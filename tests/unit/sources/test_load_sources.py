"""The registry: what `sources.yaml` may contain, and which class is created for it."""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longstop.errors import PageNotFound, SettingsError, UsageError
from longstop.fetching.base import FetchRequest
from longstop.model.source_queries_and_answers import Query
from longstop.sources.base import Source, SourceConfig
from longstop.sources.bodies_and_urls import digest_of
from longstop.sources.load_sources import (
    check_hosts,
    check_sources,
    enabled_sources,
    load_sources,
    make_source,
    parse_sources,
    source_for_parsing,
)
from longstop.yaml_validation import parse_yaml

SHIPPED = Path(__file__).parents[3] / "config" / "sources.yaml"
THIS = "tests.unit.sources.test_load_sources"


class EchoSource:
    """A third party's source, as small as it gets."""

    name = "echo"
    sport = "cricket"
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    metadata_keys = ("api_url", "site_url")

    def __init__(self, config: SourceConfig) -> None:
        self.config = config

    def request(self, ask: Query) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"http://127.0.0.1:8080/{ask.resource}")

    def parse(self, ask: Query, body: bytes) -> object:
        raise NotImplementedError

    def digest(self, ask: Query, body: bytes) -> bytes:
        return digest_of(body)

    def match_of(self, url: str) -> str | None:
        return None


class Unfit:
    """Takes the config, and has nothing else."""

    def __init__(self, config: SourceConfig) -> None:
        pass


class Partial(Source):
    """Inherits the empty methods of the protocol."""

    sport = "football"
    name = "partial"

    def __init__(self, config: SourceConfig) -> None:
        self.calls = ["/api/*"]  # type: ignore[assignment] # the mistake to find

    def request(self, query: Query) -> FetchRequest:
        return FetchRequest(source=self.name, url="http://127.0.0.1/")


class Broken:
    metadata_keys = ("api_url",)

    def __init__(self, config: SourceConfig) -> None:
        raise KeyError("api_url")


class Quitting:
    metadata_keys = ()

    def __init__(self, config: SourceConfig) -> None:
        sys.exit("no licence")


class NoKeys(EchoSource):
    metadata_keys: Any = None


class RawRequest(EchoSource):
    def request(self, ask: Query) -> FetchRequest:
        raise KeyError("url")


class QuittingRequest(EchoSource):
    def request(self, ask: Query) -> FetchRequest:
        sys.exit()


class NamelessError(EchoSource):
    def request(self, ask: Query) -> FetchRequest:
        raise PageNotFound("no list")


class NoRequest(EchoSource):
    def request(self, ask: Query) -> Any:
        return None


class NoUrl(EchoSource):
    def request(self, ask: Query) -> Any:
        return msgspec.structs.replace(super().request(ask), url=None)


def entry(**changes: object) -> dict[str, Any]:
    base = {
        "domain_id": "echo",
        "enabled": True,
        "precedence_weight": 50,
        "adapter_class": f"{THIS}:EchoSource",
        "hosts": ["127.0.0.1:8080"],
        "allow_private_addresses": True,
    }
    return {**base, **changes}


def config(**changes: object) -> SourceConfig:
    return parse_sources({"sources": [entry(**changes)]}, "sources.yaml")[0]


def refusal(*entries: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_sources({"sources": list(entries)}, "sources.yaml")
    return str(caught.value).splitlines()


@pytest.mark.req("MON-6")
def test_the_shipped_sites_are_all_disabled_and_ask_for_permission() -> None:
    sources = load_sources(SHIPPED)

    assert [source.domain_id for source in sources] == ["crex", "espncricinfo", "sofascore"]
    assert all(not source.enabled and source.permission is None for source in sources)
    assert not any(source.allow_private_addresses for source in sources)


def test_bodies_of_a_site_are_parsed_offline_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_bytes(msgspec.json.encode({"sources": [entry(domain_id="mine", allow_private_addresses=False)]}))

    assert isinstance(source_for_parsing("mine", file), EchoSource)


@pytest.mark.req("MON-6")
def test_a_real_site_without_permission_cannot_be_enabled() -> None:
    lines = refusal(entry(allow_private_addresses=False))

    assert lines == [
        "source echo of sources.yaml is enabled without permission: "
        "write into permission who gave it, when and how, or set enabled: false"
    ]


@pytest.mark.parametrize("host", ["crex.com", "sim.internal:8080", "93.184.216.34"])
def test_private_addresses_do_not_replace_the_permission_for_a_real_site(host: str) -> None:
    [problem] = refusal(entry(hosts=["127.0.0.1:8080", host], allow_private_addresses=True))

    assert problem.startswith("source echo of sources.yaml is enabled without permission")


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "10.0.0.7:80"])
def test_a_simulator_at_a_private_address_needs_no_permission(host: str) -> None:
    assert parse_sources({"sources": [entry(hosts=[host], allow_private_addresses=True)]}, "sources.yaml")


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_permission_is_none(blank: str) -> None:
    assert refusal(entry(allow_private_addresses=False, permission=blank))[0].startswith(
        "permission in source echo of sources.yaml is "
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"allow_private_addresses": False, "permission": "Jane Doe, by letter, 2026-10-02"},
        {"allow_private_addresses": False, "enabled": False},
        {"allow_private_addresses": True},
    ],
)
def test_a_permitted_site_a_disabled_one_and_a_simulated_one_are_accepted(changes: dict[str, Any]) -> None:
    assert config(**changes).domain_id == "echo"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hosts": []}, "hosts in source echo of sources.yaml is []: write a list of hosts such as"),
        ({"hosts": ["https://x.org/"]}, "hosts.0 in source echo of sources.yaml is 'https://x.org/': write a list of"),
        ({"precedence_weight": 101}, "is 101: write a whole number from 0 to 100"),
        ({"enabled": "perhaps"}, "enabled in source echo of sources.yaml is 'perhaps': write true or false"),
        ({"domain_id": "Crex.com"}, "domain_id in source Crex.com of sources.yaml is 'Crex.com': write a short name"),
        ({"hots": []}, "hots in source echo of sources.yaml is unknown: did you mean hosts?"),
        ({"metadata": {"depth": 3}}, "metadata.depth in source echo of sources.yaml is not valid: write `name: text`"),
    ],
)
def test_a_wrong_line_is_named_with_what_to_write(changes: dict[str, Any], sentence: str) -> None:
    lines = refusal(entry(**changes))

    assert len(lines) == 1
    assert sentence in lines[0]


def test_all_problems_are_reported_together() -> None:
    without_hosts = {name: value for name, value in entry().items() if name != "hosts"}

    lines = refusal(without_hosts, "crex", entry(), entry())

    assert [line.split(": write")[0] for line in lines[:2]] == [
        "hosts in source echo of sources.yaml is missing",
        "source 2 of sources.yaml is no block",
    ]
    assert lines[2:] == ["source echo occurs twice in sources.yaml: remove one of them"]


@pytest.mark.parametrize("text", ["sources: 5", "sources: {crex: {}}", "source: []"])
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"is not a list|is unknown"):
        parse_sources(parse_yaml(text, "sources.yaml"), "sources.yaml")


def test_an_empty_file_describes_no_site() -> None:
    assert parse_sources(parse_yaml("# nothing yet\n", "sources.yaml"), "sources.yaml") == ()


def test_a_missing_file_is_named_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="set LONGSTOP_SOURCES to"):
        load_sources(tmp_path / "none.yaml")


@pytest.mark.parametrize("package", ["playwright", "playwright_stealth"])
def test_without_its_packages_no_browser_may_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    file = tmp_path / "sources.yaml"
    plain, browsed = entry(domain_id="plain"), entry(domain_id="browsed", browser="shell")
    monkeypatch.setitem(sys.modules, package, None)

    file.write_bytes(msgspec.json.encode({"sources": [plain, {**browsed, "enabled": False}]}))
    enabled = enabled_sources(file)
    file.write_bytes(msgspec.json.encode({"sources": [plain, browsed]}))
    with pytest.raises(SettingsError) as caught:
        enabled_sources(file)

    assert [each.domain_id for each in enabled] == ["plain"]
    assert str(caught.value) == (
        f"source browsed of {file} needs a browser, but packages are missing: {package}. "
        "Run pip install 'longstop[browser]', or write browser: none if the site works without one"
    )


@pytest.mark.req("MON-6")
def test_a_class_is_found_by_its_dotted_path_and_gets_the_config() -> None:
    wanted = config(metadata={"api_url": "http://127.0.0.1:1"})

    source = make_source(wanted)

    assert isinstance(source, EchoSource)
    assert source.config is wanted


@pytest.mark.req("MON-6")
def test_a_class_is_found_by_its_entry_point() -> None:
    crex = load_sources(SHIPPED)[0]

    assert make_source(crex).name == "crex"


@pytest.mark.parametrize(
    ("adapter", "reason"),
    [
        ("crexx", "nor of the form package.module:Class: did you mean crex?"),
        ("crex.source.CrexSource", "is neither a known name nor of the form package.module:Class: "),
        ("no.such.module:Class", "cannot load no.such.module:Class: No module named 'no'. Check the spelling"),
        (f"{THIS}:Missing", "Missing: module"),
        (":Class", "cannot load"),
        (
            f"{THIS}:Unfit",
            "is not a source: method request() is missing; method parse() is missing; method digest() is missing; "
            "method match_of() is missing; attribute name is missing; attribute sport is missing; attribute calls is "
            "missing; attribute sites is missing. See docs/howto/add-a-source.md",
        ),
        (
            f"{THIS}:Partial",
            "is not a source: method parse() is missing; method digest() is missing; method match_of() is missing; "
            "attribute calls must be a tuple of strings, not list; attribute sites is missing. See",
        ),
        (f"{THIS}:Broken", "raised KeyError('api_url') in its constructor (sources/test_load_sources.py, line "),
        (f"{THIS}:THIS", "raised TypeError("),
        (f"{THIS}:Quitting", "raised SystemExit('no licence') in its constructor (sources/test_load_sources.py, line "),
        (f"{THIS}.EchoSource", f"did you mean {THIS}:EchoSource?"),
        (f"{THIS}:NoKeys", "source echo: metadata_keys must be a tuple of strings, not None"),
    ],
)
def test_a_class_that_cannot_serve_is_refused_in_a_sentence(adapter: str, reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make_source(config(adapter_class=adapter))

    assert str(caught.value).startswith("source echo")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("SITES = {}\nURL = SITES['main']\n", "raised KeyError('main') ("),
        ("def broken(:\n", "raised SyntaxError("),
        ("import sys\nsys.exit()\n", "raised SystemExit() ("),
    ],
)
def test_a_plug_in_that_cannot_be_imported_is_one_sentence_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    (tmp_path / "faulty_plugin.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(SettingsError) as caught:
        make_source(config(adapter_class="faulty_plugin:Source"))

    assert reason in str(caught.value)
    assert re.search(r"faulty_plugin\.py, line [12]\)$", str(caught.value))


def test_an_unknown_metadata_key_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(SettingsError) as caught:
        make_source(config(metadata={"api_ur": "http://127.0.0.1:1"}))

    assert str(caught.value) == (
        "source echo: unknown metadata key api_ur, did you mean api_url? Valid keys: api_url, site_url"
    )


@pytest.mark.parametrize("name", ["crex", "espncricinfo", "sofascore"])
def test_the_shipped_sources_accept_the_shipped_metadata_and_nothing_else(name: str) -> None:
    shipped = next(each for each in load_sources(SHIPPED) if each.domain_id == name)

    assert make_source(shipped).name == name
    with pytest.raises(SettingsError, match="unknown metadata key site_uri, did you mean site_url"):
        make_source(msgspec.structs.replace(shipped, metadata={"site_uri": "http://127.0.0.1"}))


def test_every_enabled_source_is_checked_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    typo = entry(domain_id="other", adapter_class=f"{THIS}:EchoSorce")

    file.write_bytes(msgspec.json.encode({"sources": [entry(), {**typo, "enabled": False}]}))
    check_sources(file)
    file.write_bytes(msgspec.json.encode({"sources": [entry(), typo]}))
    with pytest.raises(SettingsError, match="source other: cannot load"):
        check_sources(file)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hosts": ["127.0.0.1"]}, "127.0.0.1:8080 is not in the source's host list"),
        ({"allow_private_addresses": False, "permission": "by mail"}, "only https is allowed for this source"),
    ],
)
def test_a_listing_that_can_never_be_requested_stops_the_start(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    file = tmp_path / "sources.yaml"
    file.write_bytes(msgspec.json.encode({"sources": [entry(**changes)]}))

    with pytest.raises(SettingsError, match=f"{reason}. Correct its metadata, or add the host to hosts"):
        check_sources(file)


@pytest.mark.parametrize(
    ("adapter", "reason"),
    [
        ("RawRequest", "request() raised KeyError('url') (sources/test_load_sources.py, line "),
        ("QuittingRequest", "request() raised SystemExit() (sources/test_load_sources.py, line "),
        ("NamelessError", "request() raised PageNotFound('no list') (sources/test_load_sources.py, line "),
        ("NoRequest", "request() must return a FetchRequest, not None"),
        ("NoUrl", "its listing at None can never be requested: only http and https URLs are allowed"),
    ],
)
def test_a_request_that_cannot_be_built_stops_the_start_in_a_sentence(adapter: str, reason: str) -> None:
    faulty = config(adapter_class=f"{THIS}:{adapter}")

    with pytest.raises(SettingsError) as caught:
        check_hosts(make_source(faulty), faulty)

    assert str(caught.value).startswith(f"source echo: {reason}")


def test_the_password_in_the_address_of_a_listing_is_not_printed(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    with_password = entry(adapter_class="crex", metadata={"api_url": "http://me:hunter2@127.0.0.1:8080"})
    file.write_bytes(msgspec.json.encode({"sources": [with_password]}))

    with pytest.raises(SettingsError, match=r"listing at 'http://\*\*\*@127\.0\.0\.1:8080.*contains a user name"):
        check_sources(file)


def test_offline_a_source_is_the_configured_one_or_else_the_class_of_that_name(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_bytes(msgspec.json.encode({"sources": [entry(domain_id="crex", enabled=False)]}))

    assert isinstance(source_for_parsing("crex", file), EchoSource)
    assert source_for_parsing("sofascore", file).sport == "football"
    assert source_for_parsing("crex", tmp_path / "none.yaml").name == "crex"


def test_an_unknown_source_on_the_command_line_is_no_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown source crexx; known: .*crex, "):
        source_for_parsing("crexx", tmp_path / "none.yaml")


def test_an_unknown_metadata_key_without_a_similar_one_is_no_question() -> None:
    with pytest.raises(SettingsError, match=r"unknown metadata key zone\. Valid keys: api_url, site_url"):
        make_source(config(metadata={"zone": "x"}))
