"""The registry: from `config/sources.yaml` to sources that can be asked."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, ValidationError

from longstop.config_file import Group, Wanted, Whole, parse_yaml, read_text, say_problems, suggest
from longstop.errors import LongstopError, SettingsError
from longstop.fetching.browser.base import LADDER, BrowserKind, Mode
from longstop.fetching.browser.extra import INSTALL, missing_packages
from longstop.sources.base import Source, SourceConfig
from longstop.sports.registry import sports

ENTRY_POINT_GROUP = "longstop.sources"

_HOST = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$")]


#: What a class must have to be a source.
_NEEDED: dict[str, Callable[[object], bool]] = {
    "request": callable,
    "parse": callable,
    "match_of": callable,
    "digest": callable,
    "sport": lambda sport: isinstance(sport, str),
    "calls": lambda calls: isinstance(calls, tuple),
    "sites": lambda sites: isinstance(sites, tuple),
    "name": lambda name: isinstance(name, str),
}


def _refuse_none(hosts: tuple[str, ...]) -> tuple[str, ...]:
    if not hosts:
        raise ValueError("a site without a host cannot be asked")
    return hosts


def _none_as_word(kind: object) -> object:
    return None if kind == "none" else kind


class _Entry(Group):
    """One site as the file has it. It becomes a `SourceConfig` once nothing is wrong with it."""

    domain_id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,31}$"), Wanted("a short name such as crex")]
    enabled: StrictBool
    precedence_weight: Annotated[Whole, Field(ge=0, le=100)]
    adapter_class: Annotated[
        str,
        Field(min_length=1),
        Wanted(f"a name of the entry point group {ENTRY_POINT_GROUP}, or package.module:Class"),
    ]
    hosts: Annotated[
        tuple[_HOST, ...], AfterValidator(_refuse_none), Wanted("a list of hosts such as [example.org, 127.0.0.1:8080]")
    ]
    allow_private_addresses: StrictBool = False
    permission: Annotated[
        str | None, Field(pattern=r"\S"), Wanted("who gave leave to read this site, when and how, or null")
    ] = None
    metadata: Annotated[dict[str, str], Field(default_factory=dict), Wanted("`name: text` lines")]
    browser: Annotated[
        BrowserKind | None, BeforeValidator(_none_as_word), Wanted("none, shell, headless or headed")
    ] = None
    modes: Annotated[tuple[Mode, ...], Wanted(f"a list with some of {', '.join(LADDER)}")] = LADDER


def load_sources(path: Path) -> tuple[SourceConfig, ...]:
    """Return the sites that a file describes, or raise with every problem, one a line."""
    text = read_text(path, "write the path of the file that describes the sites into LONGSTOP_SOURCES")
    return parse_sources(parse_yaml(text, str(path)), str(path))


def enabled_sources(path: Path) -> tuple[SourceConfig, ...]:
    """Return the sites that may be read; none at all, or one that cannot be read here, is a mistake."""
    enabled = tuple(config for config in load_sources(path) if config.enabled)
    if not enabled:
        raise SettingsError(
            f"no source is enabled in {path}: write who gave leave to read a site into its permission and set "
            "enabled: true, or try longstop demo"
        )
    browsed = [config.domain_id for config in enabled if config.browser]
    missing = missing_packages() if browsed else []
    if missing:
        raise SettingsError(
            f"source {browsed[0]} of {path} is read by a browser, but packages are missing: {', '.join(missing)}. "
            f"Without them no page can be opened. Run {INSTALL}, or write browser: none if the site answers without one"
        )
    return enabled


def parse_sources(tree: Mapping[str, Any], file: str) -> tuple[SourceConfig, ...]:
    """Return the sites of a file's tree, or raise with every problem, one a line."""
    problems = [f"{name} in {file} is unknown: {suggest(str(name), ['sources'])}" for name in tree if name != "sources"]
    listed = tree.get("sources") or []
    if not isinstance(listed, list):
        listed = []
        problems.append(f"sources in {file} is no list: write one `- domain_id: …` block for each site")
    configs = []
    for position, raw in enumerate(listed, start=1):
        config, wrong = _read_entry(raw, position, file)
        problems += wrong
        configs += [config] if config else []
    problems += _said_twice(configs, file)
    if problems:
        raise SettingsError("\n".join(problems))
    return tuple(configs)


def make_source(config: SourceConfig) -> Source:
    """Return the source that a site's description names."""
    make = _find_class(config)
    try:
        source = make(config)
    except LongstopError:
        raise
    except Exception as error:  # the class may be a third party's: whatever it raises is a fact about the setting
        raise SettingsError(f"source {config.domain_id} cannot be made by {config.adapter_class}: {error!r}") from error
    missing = [name for name, is_fit in _NEEDED.items() if not is_fit(getattr(source, name, None))]
    if missing:
        raise SettingsError(
            f"source {config.domain_id}: {config.adapter_class} is no source, it lacks {', '.join(missing)}"
        )
    made = cast(Source, source)
    if made.sport not in sports():
        raise SettingsError(
            f"source {config.domain_id}: {config.adapter_class} reads {made.sport}, and no package for that sport is "
            f"installed. Known: {', '.join(sports())}"
        )
    return made


def offline_source(name: str) -> Source:
    """Return a source that is only going to read bodies: nobody is asked, so nobody's leave is needed."""
    return make_source(
        SourceConfig(
            domain_id=name,
            enabled=False,
            precedence_weight=0,
            adapter_class=name,
            hosts=(),
            allow_private_addresses=False,
            permission=None,
            metadata={},
        )
    )


def _read_entry(raw: object, position: int, file: str) -> tuple[SourceConfig | None, list[str]]:
    name = raw.get("domain_id", position) if isinstance(raw, Mapping) else position
    where = f"source {name} of {file}"
    if not isinstance(raw, Mapping):
        return None, [f"{where} is {raw!r}: write a block that begins with `- domain_id: …`"]
    try:
        entry = _Entry.model_validate(raw)
    except ValidationError as error:
        return None, say_problems(_Entry, error, {}, where)
    config = SourceConfig(**entry.model_dump())
    return config, _without_leave(config, where)


def _without_leave(config: SourceConfig, where: str) -> list[str]:
    if not config.enabled or config.allow_private_addresses or config.permission:
        return []
    return [f"{where} is enabled without leave: write into permission who gave it, when and how, or enabled: false"]


def _said_twice(configs: list[SourceConfig], file: str) -> list[str]:
    names = [config.domain_id for config in configs]
    return [
        f"source {name} stands twice in {file}: take one away" for name in sorted(set(names)) if names.count(name) > 1
    ]


def _find_class(config: SourceConfig) -> Callable[[SourceConfig], object]:
    module_name, colon, class_name = config.adapter_class.partition(":")
    try:
        if colon:
            return cast(Callable[[SourceConfig], object], getattr(import_module(module_name), class_name))
        shipped = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
        if config.adapter_class in shipped:
            return cast(Callable[[SourceConfig], object], shipped[config.adapter_class].load())
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"source {config.domain_id}: {config.adapter_class} cannot be loaded: {error}") from error
    advice = suggest(config.adapter_class, sorted(shipped))
    raise SettingsError(f"source {config.domain_id}: adapter_class {config.adapter_class} is unknown: {advice}")
