"""Settings: the environment over the file over the defaults, and a sentence for every mistake."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import SettingsError
from longstop.settings import Api, Settings, known_variables, leaves, load_settings, read_settings
from longstop.telemetry.events import Severity
from longstop.yaml_validation import parse_yaml

CONFIG = Path(__file__).parents[2] / "config" / "config.yaml"


#: Leaves with the variables that set them.
LIFECYCLE = {
    "busy_interval": "BUSY_INTERVAL_SECONDS",
    "break_interval": "BREAK_INTERVAL_SECONDS",
    "break_after": "BREAK_AFTER_SECONDS",
    "completed_interval": "COMPLETED_INTERVAL_SECONDS",
    "calm_after_errors": "CALM_AFTER_ERRORS_SECONDS",
    "not_found_memory": "NOT_FOUND_SECONDS",
    "max_lifetime_hours": "SCRAPER_MAX_LIFETIME_HOURS",
    "staleness_threshold": "STALENESS_THRESHOLD_SECONDS",
}
BREAKER = {
    "threshold": "CIRCUIT_BREAKER_THRESHOLD",
    "timeout": "CIRCUIT_BREAKER_TIMEOUT_SECONDS",
    "success_threshold": "CIRCUIT_BREAKER_SUCCESS_THRESHOLD",
    "canary_interval": "CIRCUIT_BREAKER_CANARY_SECONDS",
    "slow": "CIRCUIT_BREAKER_SLOW_SECONDS",
    "pause_threshold": "PAUSE_THRESHOLD",
    "cool_down": "COOL_DOWN_SECONDS",
    "source_timeout": "CIRCUIT_BREAKER_SOURCE_SECONDS",
    "layout_probe": "LAYOUT_PROBE_SECONDS",
}
RETRY = {
    "max_attempts": "RETRY_MAX_ATTEMPTS",
    "base_delay": "RETRY_BASE_DELAY_SECONDS",
    "max_delay": "RETRY_MAX_DELAY_SECONDS",
}


#: The limits of the API, with other values than their defaults.
API = {
    "LONGSTOP_API_CONNECTIONS": "7",
    "LONGSTOP_API_CONNECTIONS_PER_ADDRESS": "7",
    "LONGSTOP_API_REQUEST_SECONDS": "7",
    "LONGSTOP_API_WRITE_SECONDS": "7",
    "LONGSTOP_API_IDLE_SECONDS": "7",
}
#: The leaves of its group.
API_LEAVES = ", ".join(Api.model_fields)

#: Every leaf of the browser's groups, with another value than its default.
BROWSER = {
    "BROWSER_EXECUTABLE": "/opt/chromium",
    "BROWSER_HEADLESS": "false",
    "SCRAPER_USE_CDP": "true",
    "BROWSER_PROCESS_PER_SITE": "true",
    "PAGE_TIMEOUT_SECONDS": "7",
    "NAVIGATION_TIMEOUT_SECONDS": "7",
    "BROWSER_HUNG_SECONDS": "7",
    "BROWSER_MAX_PAGES": "700",
    "BROWSER_MAX_HOURS": "7",
    "BROWSER_MAX_MEMORY_MB": "700",
    "BROWSER_MAX_PROCESSES": "700",
    "BROWSER_SWEEP_SECONDS": "7",
    "IPROYAL_HOST": "proxy.example",
    "IPROYAL_PORT": "7",
    "IPROYAL_USERNAME": "us",
    "IPROYAL_PASSWORD": "canary",
    "IPROYAL_COUNTRY": "de",
    "SCRAPER_PROXY_MODE": "rotating",
    "SCRAPER_STICKY_TTL_SECONDS": "70",
    "SCRAPER_PROXY_SESSIONS": "7",
    "SCRAPER_PROXY_BUDGET_MB": "512",
}


def refusal(environ: dict[str, str], file: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ, file or {})
    return str(caught.value).splitlines()


@pytest.mark.req("NFR-021")
def test_the_committed_file_says_the_defaults_and_nothing_else() -> None:
    text = CONFIG.read_text()

    settings = load_settings({}, parse_yaml(text, "config.yaml"))

    assert settings == Settings()
    for leaf in leaves():
        assert f"{leaf.path[-1]}: " in text, f"document {'.'.join(leaf.path)} in config/config.yaml"
        assert f"# {leaf.variable}: " in text, f"name {leaf.variable} in config/config.yaml"


def test_every_setting_has_a_docstring_and_a_variable_of_its_own() -> None:
    described = [_field(leaf.path).description for leaf in leaves()]
    variables = [leaf.variable for leaf in leaves()]

    assert all(described)
    assert len(set(variables)) == len(variables)


def _field(path: tuple[str, ...]) -> Any:
    model: Any = Settings
    for name in path[:-1]:
        model = model.model_fields[name].annotation
    return model.model_fields[path[-1]]


@pytest.mark.req("NFR-021")
def test_the_environment_wins_over_the_file() -> None:
    file = {"api": {"port": 9000, "host": "0.0.0.0"}, "scraper": {"lifecycle": {"polling_interval": 5}}}  # noqa: S104

    settings = load_settings({"LONGSTOP_API_PORT": "9001"}, file)

    assert (settings.api.port, settings.api.host, settings.scraper.lifecycle.polling_interval) == (9001, "0.0.0.0", 5)  # noqa: S104


@pytest.mark.parametrize(
    "host", ["localhost", "api.example.org.", "192.0.2.1", "::", "::1", "::ffff:127.0.0.1", "a" * 63]
)
def test_names_and_addresses_are_hosts(host: str) -> None:
    assert load_settings({"LONGSTOP_API_HOST": host}, {}).api.host == host


def test_every_variable_reaches_its_leaf() -> None:
    environ = {
        "LONGSTOP_DATA": "elsewhere",
        "LONGSTOP_SOURCES": "sites.yaml",
        "LONGSTOP_API_HOST": "::1",
        "LONGSTOP_API_PORT": "0",
        **API,
        "LOG_LEVEL": "WARN",
        "POLLING_INTERVAL_SECONDS": "0.5",
        "DISCOVERY_INTERVAL_SECONDS": "30",
        "CONCURRENCY_CAP": "8",
        "FETCH_TIMEOUT_SECONDS": "3",
        "FETCH_MAX_BODY_BYTES": "2048",
        "SCRAPER_MAX_POLL_BYTES": "200000",
        "SCRAPER_MAX_POLL_PAGES": "20",
        "SCRAPER_MAX_ITEMS": "300",
        "SCRAPER_MAX_EVENTS": "400",
        "SCRAPER_MAX_INNINGS": "5",
        "SCRAPER_MAX_OVERS": "60",
        "SCRAPER_MAX_ENTRIES": "70",
        "SCRAPER_MAX_MATCHES": "80",
        "SCRAPER_MAX_TEXT": "900",
        "SCRAPER_MAX_PAYLOAD_BYTES": "20000",
        "SCRAPER_MAX_PARSE_SECONDS": "3",
        "TOKEN_TTL_HOURS": "1",
        "LONGSTOP_SETTLED_SECONDS": "2",
        "LONGSTOP_STALL_SECONDS": "20",
        "LONGSTOP_STANDSTILL_SECONDS": "15",
        "LONGSTOP_STOP_SECONDS": "3",
        "MEMORY_SOFT_LIMIT_MB": "70",
        "MEMORY_HARD_LIMIT_MB": "80",
        "MEMORY_MIN_AVAILABLE_MB": "90",
        "ENABLE_PROMETHEUS_METRICS": "false",
        "PROMETHEUS_HOST": "localhost",
        "PROMETHEUS_PORT": "9091",
        "ALERT_WEBHOOK_URL": "http://localhost/alerts",
        "ALERT_WEBHOOK_SECRET": "canary",
        "ERROR_RATE_THRESHOLD": "3",
        "SNAPSHOTS": "off",
        **dict.fromkeys(LIFECYCLE.values(), "7"),
        **dict.fromkeys((*BREAKER.values(), *RETRY.values()), "9"),
        "IMPORTANT_MATCHES": "final, India",
        **BROWSER,
    }

    settings = load_settings(environ, {})

    assert settings.data == Path("elsewhere")
    assert settings.sources == Path("sites.yaml")
    assert settings.api.model_dump() == {
        "host": "::1",
        "port": 0,
        "connections": 7,
        "connections_per_address": 7,
        "request_timeout": 7.0,
        "write_timeout": 7.0,
        "idle_timeout": 7.0,
        "token_ttl_hours": 1,
    }
    assert settings.scraper.lifecycle.model_dump() == {
        "polling_interval": 0.5,
        "discovery_interval": 30,
        "important": "final, India",
        **dict.fromkeys(LIFECYCLE, 7),
    }
    assert settings.scraper.resilience.model_dump() == {
        "circuit_breaker": dict.fromkeys(BREAKER, 9),
        "retry": dict.fromkeys(RETRY, 9),
    }
    assert settings.scraper.monitoring.webhook.url == "http://localhost/alerts"
    assert settings.scraper.monitoring.webhook.secret.get_secret_value() == "canary"
    assert settings.scraper.monitoring.error_rate_threshold == 3
    assert settings.scraper.monitoring.keep_error_pages is False
    assert settings.scraper.fetching.model_dump() == {"concurrency_cap": 8, "timeout": 3, "max_body_bytes": 2048}
    assert settings.scraper.limits.model_dump() == {
        "poll_bytes": 200000,
        "poll_pages": 20,
        "items": 300,
        "events": 400,
        "innings": 5,
        "overs": 60,
        "entries": 70,
        "matches": 80,
        "text": 900,
        "payload_bytes": 20000,
        "parse_seconds": 3,
    }
    browser = settings.scraper.browser
    assert browser.model_dump(exclude={"proxy"}) == {
        "executable": "/opt/chromium",
        "headless": False,
        "use_cdp": True,
        "process_per_site": True,
        "timeouts": {"page": 7, "navigation": 7, "hung": 7},
        "life": {"max_pages": 700, "max_hours": 7, "max_memory_mb": 700, "max_processes": 700, "sweep_interval": 7},
    }
    assert browser.proxy.model_dump(exclude={"password"}) == {
        "host": "proxy.example",
        "port": 7,
        "username": "us",
        "country": "de",
        "mode": "rotating",
        "sticky_ttl": 70,
        "sessions": 7,
        "budget_mb": 512,
    }
    assert browser.proxy.password.get_secret_value() == "canary"
    assert settings.scraper.monitoring.logging.level is Severity.WARN
    assert settings.scraper.monitoring.prometheus.model_dump() == {"enabled": False, "host": "localhost", "port": 9091}
    assert settings.supervision.model_dump() == {
        "settled_after": 2,
        "stop_within": 3,
        "stalled_after": 20,
        "standstill_after": 15,
    }
    memory = {"soft_limit_mb": 70, "hard_limit_mb": 80, "min_available_mb": 90}
    assert settings.scraper.resources.memory.model_dump() == memory
    assert set(environ) == {leaf.variable for leaf in leaves()}


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"LONGSTOP_API_PORT": "70000"}, "LONGSTOP_API_PORT is '70000': write a whole number from 0 to 65535"),
        ({"LONGSTOP_API_PORT": ""}, "LONGSTOP_API_PORT is '': write a whole number from 0 to 65535"),
        ({"POLLING_INTERVAL_SECONDS": "nan"}, "POLLING_INTERVAL_SECONDS is 'nan': write a number from 0.1 to 60"),
        ({"POLLING_INTERVAL_SECONDS": "soon"}, "POLLING_INTERVAL_SECONDS is 'soon': write a number from 0.1 to 60"),
        ({"ENABLE_PROMETHEUS_METRICS": "perhaps"}, "ENABLE_PROMETHEUS_METRICS is 'perhaps': write true or false"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL is 'loud': write one of DEBUG, INFO, WARN, ERROR, CRITICAL"),
        ({"LONGSTOP_DATA": " "}, "LONGSTOP_DATA is ' ': write a path"),
        (
            {"LONGSTOP_API_HOST": "http://here/"},
            "LONGSTOP_API_HOST is 'http://here/': write a host name or address such as 127.0.0.1",
        ),
        *(
            ({name: host}, f"{name} is '{host}': write a host name or address such as 127.0.0.1")
            for name in ("LONGSTOP_API_HOST", "PROMETHEUS_HOST")
            for host in ("a..b", ".a", "a" * 64)
        ),
        ({"IPROYAL_HOST": "a..b"}, "IPROYAL_HOST is 'a..b': write a host name"),
        ({"LONGSTOP_API_PROT": "1"}, "LONGSTOP_API_PROT is unknown: did you mean LONGSTOP_API_PORT?"),
    ],
)
def test_a_wrong_variable_is_named_with_what_to_write(environ: dict[str, str], sentence: str) -> None:
    assert refusal(environ) == [sentence]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ({"api": {"prot": 1}}, "api.prot in config.yaml is unknown: did you mean port?"),
        ({"apy": {}}, "apy in config.yaml is unknown: did you mean api?"),
        ({"api": {7: 1}}, f"api.7 in config.yaml is unknown: remove it, or use one of {API_LEAVES}"),
        ({"api": 5}, f"api in config.yaml is 5: write a group of {API_LEAVES}"),
        ({"api": {"port": True}}, "api.port in config.yaml is True: write a whole number from 0 to 65535"),
        ({"api": {"port": None}}, "api.port in config.yaml is None: write a whole number from 0 to 65535"),
        ({"api": {"port": 1.5}}, "api.port in config.yaml is 1.5: write a whole number from 0 to 65535"),
        ({"data": ["x"]}, "data in config.yaml is ['x']: write a path"),
    ],
)
def test_a_wrong_line_of_the_file_is_named_with_what_to_write(file: dict[str, Any], sentence: str) -> None:
    assert refusal({}, file) == [sentence]


@pytest.mark.parametrize(
    ("environ", "file"),
    [
        ({}, {"scraper": {"browser": {"proxy": {"password": ["hunter2"]}}}}),
        ({}, {"scraper": {"monitoring": {"webhook": {"secret": {"hunter2": 1}}}}}),
        ({}, {"scraper": {"monitoring": {"webhook": [{"secret": "hunter2"}]}}}),
        ({}, {"scraper": ["hunter2"]}),
        ({"ALERT_WEBHOOK_URL": "ftp://me:hunter2@example.org/"}, {}),
        ({"ALERT_WEBHOOK_URL": f"ftp://me:hunter2{'x' * 99}@example.org/"}, {}),
        ({"IPROYAL_HOST": "me:hunter2/@\n@example.org"}, {}),
        ({}, {"scraper": {"monitoring": {"webhook": {"url": ["http://me:hunter2@example.org"]}}}}),
    ],
)
def test_no_message_contains_a_secret(environ: dict[str, str], file: dict[str, Any]) -> None:
    (line,) = refusal(environ, file)

    assert ": write " in line
    assert "hunter2" not in line
    assert not environ or "***@example.org" in line


def test_all_problems_are_reported_together_one_per_line() -> None:
    lines = refusal({"LONGSTOP_API_PORT": "-1", "RETRY_OFTEN": "1"}, {"api": {"host": 3}})

    assert [line.split(" is ")[0] for line in lines] == ["RETRY_OFTEN", "api.host in config.yaml", "LONGSTOP_API_PORT"]


def test_a_variable_does_not_hide_that_its_group_in_the_file_is_none() -> None:
    assert refusal({"LONGSTOP_API_PORT": "1"}, {"api": 5}) == [
        f"api in config.yaml is 5: write a group of {API_LEAVES}"
    ]


@pytest.mark.parametrize("name", ["SCRAPER_X", "CIRCUIT_BREAKER_X", "RETRY_X", "LONGSTOP_X"])
def test_an_unknown_name_with_one_of_our_beginnings_is_refused(name: str) -> None:
    assert refusal({name: "1"})[0].startswith(f"{name} is unknown: ")


def test_names_of_others_are_ignored() -> None:
    assert load_settings({"PATH": "/bin", "LONGSTOPPER": "1", "HOME": ""}, {}) == Settings()


def test_names_that_others_read_are_known() -> None:
    environ = {"LONGSTOP_CONFIG": "x", "LONGSTOP_RECORDED": "x", "LONGSTOP_PARENT_FD": "3", "LONGSTOP_BEAT_FD": "4"}

    assert load_settings(environ, {}) == Settings()
    assert set(environ) <= set(known_variables())


def test_a_group_whose_lines_are_all_commented_out_is_the_default() -> None:
    assert load_settings({}, {"api": None, "scraper": {"fetching": None}}) == Settings()


def test_the_file_named_in_the_environment_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("api:\n  port: 9002\n")

    assert read_settings({"LONGSTOP_CONFIG": str(file)}).api.port == 9002
    assert read_settings({}).api.port == 8700


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"api: [", "mine.yaml, line 1, is not valid YAML"),
        (b"api:\n  port: 1\n  port: 2\n", "line 3, is not valid YAML: 'port' is given twice"),
        (b"\xff\xfe\x00", "(it is not UTF-8 text)"),
        (b"- a\n", "is a list or a single value: write `name: value` lines"),
        (b"when: 2026-99-99\n", "is not valid YAML"),
        (b"[" * 100_000, "is not valid YAML"),
        (b"!!python/object:os.system {}", "is not valid YAML"),
        (b"? [a]\n: 1\n", "is not valid YAML"),
        (b"a: &a [1]\nb: *a\n", "line 1, is not valid YAML: quote texts that begin with &, * or !"),
        (b"api: *hunter2", "line 1, is not valid YAML: quote texts that begin with &, * or !"),
        *((b"api: !!" + tag, "quote texts") for tag in (b'bool "x"', b"timestamp x", b'int ""', b'float ""')),
        (b"api: {port: 0x" + b"f" * 9999 + b"}", "api.port in "),
        (b"api: {port: 1" + b"0" * 9999 + b"}", "api.port in "),
        (b"api: {port: 1" + b":59" * 60_000 + b"}", "api.port in "),
        (b"api: {port: 1" + b":59" * 60_000 + b".0}", "api.port in "),
        (b"? 0x" + b"f" * 9999 + b"\n: 1", " is unknown: "),
        (b'data: "a\\0b"', "data in "),
        (b'data: "a\\uD800b"', "data in "),
        (b'scraper: {browser: {executable: "a\\0b"}}', "executable in "),
        (b'"\\e[31m\\n": 1', r"\x1b[31m\n in "),
        (b'api: {port: "\\e[31m"}', r"is '\x1b[31m': write"),
        (b"#" * 200_001, "(it is larger than 200,000 bytes)"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        read_settings({"LONGSTOP_CONFIG": str(file)})

    assert reason in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("device", ["/dev/zero", "."])
def test_a_file_that_is_not_regular_is_refused_unread(device: str) -> None:
    with pytest.raises(SettingsError, match=r"\(it is not a regular file\): set LONGSTOP_CONFIG"):
        read_settings({"LONGSTOP_CONFIG": device})


@given(text=st.text(st.sampled_from("a1x0:_.-+<=&*!?#%|>,[]{}'\"\\@ \n\t~")))
def test_any_text_is_a_tree_or_a_sentence_and_nothing_else(text: str) -> None:
    try:
        outcome = f"config.yaml has {len(parse_yaml(text, 'config.yaml'))} names"
    except SettingsError as error:
        outcome = str(error)

    assert outcome.startswith("config.yaml")


def test_a_missing_file_is_named_with_what_to_write() -> None:
    with pytest.raises(
        SettingsError, match=r"nowhere\.yaml .*: set LONGSTOP_CONFIG to the path of a settings file, or unset it"
    ):
        read_settings({"LONGSTOP_CONFIG": "nowhere.yaml"})


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "7", "INFO", "here"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["api", "port", "scraper", "logging", "level", "x", "data"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(file=st.dictionaries(st.sampled_from(["api", "scraper", "data", "sources", "y"]), _TREES, max_size=4))
def test_any_tree_gives_settings_or_sentences_and_nothing_else(file: dict[str, Any]) -> None:
    try:
        outcome = str(load_settings({}, file).api.host)
    except SettingsError as error:
        outcome = str(error)

    assert outcome == "127.0.0.1" or all(": " in line for line in outcome.splitlines())
