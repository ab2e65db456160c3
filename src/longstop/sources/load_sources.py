"""Loads `config/sources.yaml`, and creates the source class of each site."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, ValidationError

from longstop.errors import ForbiddenTarget, LongstopError, SettingsError, UsageError
from longstop.fetching.addresses import allowed_url, may_be_public
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import LADDER, BrowserKind, Mode
from longstop.fetching.browser.chromium_path_and_arguments import INSTALL, missing_packages
from longstop.model.source_queries_and_answers import LIST, Query
from longstop.sources.base import Source, SourceConfig
from longstop.sources.bodies_and_urls import location_of
from longstop.sports.registry import sports
from longstop.yaml_validation import Group, Wanted, Whole, describe_problems, parse_yaml, quote, read_text, suggest

ENTRY_POINT_GROUP = "longstop.sources"

_HOST = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$")]


#: The members of a source class.
_METHODS = ("request", "parse", "digest", "match_of")
_TEXTS = ("name", "sport")
_TUPLES = ("calls", "sites")


def _require_host(hosts: tuple[str, ...]) -> tuple[str, ...]:
    if not hosts:
        raise ValueError("a site needs at least one host")
    return hosts


def _parse_none(kind: object) -> object:
    return None if kind == "none" else kind


class _Entry(Group):
    """One site in the file. A valid entry becomes a `SourceConfig`."""

    domain_id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,31}$"), Wanted("a short name such as crex")]
    enabled: StrictBool
    precedence_weight: Annotated[Whole, Field(ge=0, le=100)]
    adapter_class: Annotated[
        str,
        Field(min_length=1),
        Wanted(f"a name of the entry point group {ENTRY_POINT_GROUP}, or package.module:Class"),
    ]
    hosts: Annotated[
        tuple[_HOST, ...],
        AfterValidator(_require_host),
        Wanted("a list of hosts such as [example.org, 127.0.0.1:8080]"),
    ]
    allow_private_addresses: StrictBool = False
    permission: Annotated[
        str | None, Field(pattern=r"\S"), Wanted("who gave permission to scrape this site, when and how, or null")
    ] = None
    metadata: Annotated[dict[str, str], Field(default_factory=dict), Wanted("`name: text` lines")]
    browser: Annotated[BrowserKind | None, BeforeValidator(_parse_none), Wanted("none, shell, headless or headed")] = (
        None
    )
    modes: Annotated[tuple[Mode, ...], Wanted(f"a list with some of {', '.join(LADDER)}")] = LADDER


def load_sources(path: Path, *, is_offline: bool = False) -> tuple[SourceConfig, ...]:
    """Return the configured sites, or raise with every problem, one per line. Offline, no site needs permission."""
    text = read_text(path, "set LONGSTOP_SOURCES to the path of the file that describes the sites")
    return parse_sources(parse_yaml(text, str(path)), str(path), is_offline=is_offline)


def enabled_sources(path: Path) -> tuple[SourceConfig, ...]:
    """Return the enabled sites. It is an error if there is none, or if one needs packages that are not installed."""
    enabled = tuple(config for config in load_sources(path) if config.enabled)
    if not enabled:
        raise SettingsError(
            f"no source is enabled in {path}, so there is nothing to poll. Write who gave permission to scrape a site "
            "into its permission and set enabled: true, or try longstop demo"
        )
    browsed = [config.domain_id for config in enabled if config.browser]
    missing = missing_packages() if browsed else []
    if missing:
        raise SettingsError(
            f"source {browsed[0]} of {path} needs a browser, but packages are missing: {', '.join(missing)}. "
            f"Run {INSTALL}, or write browser: none if the site works without one"
        )
    return enabled


def parse_sources(tree: Mapping[str, Any], file: str, *, is_offline: bool = False) -> tuple[SourceConfig, ...]:
    """Return the sites of a parsed file, or raise with every problem, one per line."""
    problems = [f"{name} in {file} is unknown: {suggest(str(name), ['sources'])}" for name in tree if name != "sources"]
    listed = tree.get("sources") or []
    if not isinstance(listed, list):
        listed = []
        problems.append(f"sources in {file} is not a list: write one `- domain_id: …` block for each site")
    configs = []
    for position, raw in enumerate(listed, start=1):
        config, wrong = _read_entry(raw, position, file)
        problems += wrong
        if config is not None:
            configs.append(config)
            problems += [] if is_offline else _without_permission(config, file)
    problems += _duplicates(configs, file)
    if problems:
        raise SettingsError("\n".join(problems))
    return tuple(configs)


def check_sources(path: Path) -> None:
    """Raise unless every enabled source can be created, and may request its listing."""
    for config in enabled_sources(path):
        check_hosts(make_source(config), config)


def make_source(config: SourceConfig) -> Source:
    """Return the source of a site; raise a `SettingsError` that says what is wrong with its class."""
    who = f"source {config.domain_id}"
    make = _find_class(config)
    if unknown := _unknown_metadata(make, config.metadata):
        raise SettingsError(f"{who}: {unknown}")
    try:
        source = make(config)
    except LongstopError:
        raise
    except (Exception, SystemExit) as error:  # plug-in code may raise anything
        raise SettingsError(
            f"{who}: {config.adapter_class} raised {error!r} in its constructor ({location_of(error)})"
        ) from error
    if problems := list(problems_of(source)):
        raise SettingsError(
            f"{who}: {config.adapter_class} is not a source: {'; '.join(problems)}. See docs/howto/add-a-source.md"
        )
    made = cast(Source, source)
    if made.sport not in sports():
        raise SettingsError(
            f"{who}: {config.adapter_class} has sport {made.sport!r}, but no package for that sport is installed. "
            f"Installed: {', '.join(sports())}"
        )
    return made


def check_hosts(source: Source, config: SourceConfig) -> None:
    """Raise if the listing is at an address that the guards would refuse for ever."""
    who = f"source {config.domain_id}"
    try:
        request: object = source.request(Query(resource=LIST))
    except UsageError:  # it offers no listing
        return
    except (Exception, SystemExit) as error:  # plug-in code may raise anything
        raise SettingsError(f"{who}: request() raised {error!r} ({location_of(error)})") from error
    if not isinstance(request, FetchRequest):
        raise SettingsError(f"{who}: request() must return a FetchRequest, not {request!r}")
    try:
        allowed_url(str(request.url), config.hosts, config.allow_private_addresses)
    except ForbiddenTarget as error:
        raise SettingsError(
            f"{who}: its listing at {quote(request.url)} can never be requested: {error.reason}. Correct "
            "its metadata, or add the host to hosts (with the port, unless it is the default)"
        ) from error


def _unknown_metadata(make: object, metadata: Mapping[str, str]) -> str | None:
    """Return what is wrong with the metadata: a typo would otherwise fall back to the default, the real site."""
    known = getattr(make, "metadata_keys", ())
    if not isinstance(known, tuple):
        return f"metadata_keys must be a tuple of strings, not {known!r}"
    unknown = next((key for key in metadata if key not in known), None)
    if unknown is None:
        return None
    valid = f"Valid keys: {', '.join(known)}" if known else "The class declares no metadata_keys"
    near = get_close_matches(unknown, known, n=1)
    return f"unknown metadata key {unknown}{f', did you mean {near[0]}?' if near else '.'} {valid}"


def problems_of(source: object) -> Iterator[str]:
    """Yield what a source class must have and has not."""
    for name in _METHODS:
        # A class that inherits from the protocol also inherits its empty methods.
        if getattr(type(source), name, None) is getattr(Source, name) or not callable(getattr(source, name, None)):
            yield f"method {name}() is missing"
    for names, kind, wanted in ((_TEXTS, str, "a string"), (_TUPLES, tuple, "a tuple of strings")):
        for name in names:
            if not hasattr(source, name):
                yield f"attribute {name} is missing"
            elif not isinstance(getattr(source, name), kind):
                yield f"attribute {name} must be {wanted}, not {type(getattr(source, name)).__name__}"


def source_for_parsing(name: str, path: Path) -> Source:
    """Return a source that parses bodies offline: as configured if the file has it, else by the name of its class."""
    configured = {config.domain_id: config for config in load_sources(path, is_offline=True)} if path.exists() else {}
    if name in configured:
        return make_source(configured[name])
    shipped = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)}
    if ":" not in name and name not in shipped:
        raise UsageError(f"unknown source {name}; known: {', '.join(sorted({*configured, *shipped}))}")
    return offline_source(name)


def offline_source(name: str) -> Source:
    """Return an unconfigured source that only parses bodies. It sends no request, so it needs no permission."""
    return make_source(SourceConfig(domain_id=name, adapter_class=name))


def _read_entry(raw: object, position: int, file: str) -> tuple[SourceConfig | None, list[str]]:
    name = raw.get("domain_id", position) if isinstance(raw, Mapping) else position
    where = f"source {name} of {file}"
    if not isinstance(raw, Mapping):
        return None, [f"{where} is no block: write a block that begins with `- domain_id: …`"]
    try:
        entry = _Entry.model_validate(raw)
    except ValidationError as error:
        return None, describe_problems(_Entry, error, {}, where)
    return SourceConfig(**entry.model_dump()), []


def _without_permission(config: SourceConfig, file: str) -> list[str]:
    # Only our own machines need no permission: a name may lead anywhere, an address does not.
    is_ours = config.allow_private_addresses and not any(map(may_be_public, config.hosts))
    if not config.enabled or is_ours or config.permission:
        return []
    return [
        f"source {config.domain_id} of {file} is enabled without permission: write into permission who gave it, when "
        "and how, or set enabled: false"
    ]


def _duplicates(configs: list[SourceConfig], file: str) -> list[str]:
    names = [config.domain_id for config in configs]
    return [
        f"source {name} occurs twice in {file}: remove one of them"
        for name in sorted(set(names))
        if names.count(name) > 1
    ]


def _find_class(config: SourceConfig) -> Callable[[SourceConfig], object]:
    module_name, colon, class_name = config.adapter_class.partition(":")
    shipped = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if not colon and config.adapter_class not in shipped:
        module_name, dot, class_name = config.adapter_class.rpartition(".")
        dotted = f"did you mean {module_name}:{class_name}?" if dot else None
        advice = dotted or suggest(config.adapter_class, sorted(shipped))
        raise SettingsError(
            f"source {config.domain_id}: adapter_class {config.adapter_class} is neither a known name nor of the form"
            f" package.module:Class: {advice}"
        )
    try:
        found = getattr(import_module(module_name), class_name) if colon else shipped[config.adapter_class].load()
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"source {config.domain_id}: cannot load {config.adapter_class}: {error}. Check the spelling of"
            " package.module:Class, install the package, or put its folder on PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:  # plug-in code may raise anything
        raise SettingsError(
            f"source {config.domain_id}: importing {config.adapter_class} raised {error!r} ({location_of(error)})"
        ) from error
    return cast(Callable[[SourceConfig], object], found)
