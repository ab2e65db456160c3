"""Sentences on stderr that quote a site, an argument, a file or the environment."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from longstop import errors
from longstop.cli.main import command_line, main
from longstop.model.command_and_standing_order import CommandState, Reply
from longstop.supervision.exit_codes import Exit
from tests.integration.test_backup import a_node
from tests.security.hostile_texts import FORGED, HOSTILE, HOSTILE_IN_MEMORY, raw, subclasses, without_styles

TEXT = HOSTILE_IN_MEMORY + FORGED
#: What a shell passes on: no NUL.
ARGUMENT = HOSTILE.replace("\0", "") + FORGED
NOT_UTF_8 = os.fsdecode(b"caf\xe9\xff")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_node(tmp_path_factory.mktemp("node") / "data").path


def ended(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str, **environ: str
) -> tuple[int, str]:
    """Run the command line as its program does; return the exit code and all that it printed."""
    monkeypatch.setattr(sys, "argv", ["longstop", *arguments])
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    code = 0
    try:
        main()
    except SystemExit as done:
        code = int(done.code or 0)
    printed = capfd.readouterr()
    return code, printed.out + printed.err


def is_one_sentence(text: str) -> bool:
    return raw(text) == set() and text.startswith("longstop: ") and text.count("\n") == 1


def an_error(kind: type[errors.LongstopError]) -> errors.LongstopError:
    error = errors.ResourcesExhausted("memory", TEXT) if kind is errors.ResourcesExhausted else kind(TEXT)
    if isinstance(error, errors.SourceError):
        error.name(TEXT, TEXT)
    return error


@pytest.mark.parametrize("verb", ["matches", "scraper"])
@pytest.mark.parametrize("kind", list(dict.fromkeys(subclasses(errors.LongstopError))), ids=lambda kind: kind.__name__)
def test_no_error_prints_what_it_quotes_raw(
    kind: type[errors.LongstopError],
    verb: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise an_error(kind)

    monkeypatch.setattr("longstop.cli.matches_events_and_token.existing_data", fail)
    monkeypatch.setattr("longstop.cli.processes.settings_for", fail)

    code, text = ended(monkeypatch, capfd, verb)

    assert code != 0
    assert raw(text) == set()
    # Only the loader of settings writes several sentences, one for each setting.
    assert text.count("\n") == 1 or kind is errors.SettingsError


def test_health_prints_why_it_is_unknown_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise errors.StorageError(TEXT)

    monkeypatch.setattr("longstop.cli.health_errors_recoveries.existing_data", fail)

    code, text = ended(monkeypatch, capfd, "health")

    assert code == 3
    assert is_one_sentence(text)


@pytest.mark.parametrize("error", [OSError(5, TEXT, TEXT), FileNotFoundError(2, "none", os.fsdecode(b"\xff\x1b[2J"))])
def test_a_name_of_a_file_in_a_system_error_is_not_raw(
    error: OSError, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("longstop.cli.matches_events_and_token.existing_data", fail)

    assert is_one_sentence(ended(monkeypatch, capfd, "matches")[1])


@pytest.mark.parametrize("state", [CommandState.DONE, CommandState.REFUSED, CommandState.FAILED])
def test_the_answer_of_a_scraper_is_one_line(
    node: Path, state: CommandState, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def reply(*_: object) -> Reply:
        return Reply(state=state, answer=TEXT)

    monkeypatch.setattr("longstop.cli.operator_commands._is_scraper_running", lambda _: True)
    monkeypatch.setattr("longstop.cli.operator_commands.wait_for_reply", reply)

    _, text = ended(monkeypatch, capfd, "recycle", "--data", str(node))

    assert raw(text) == set()
    assert text.count("\n") == 1


# --- arguments


def verbs() -> Iterator[tuple[str, Any]]:
    """Yield each verb with one of its parameters."""
    group: Any = typer.main.get_command(command_line())
    for verb, command in sorted(group.commands.items()):
        for parameter in command.params:
            if not getattr(parameter, "is_flag", False):
                yield verb, parameter


#: A path may have any bytes; verbs that create or run something at a path are not tried with one.
TRIED = [
    pytest.param(verb, parameter, id=f"{verb} {parameter.name}")
    for verb, parameter in verbs()
    if not (parameter.name in ("data", "keep", "truth", "replay") and verb in ("demo", "simulate", "up", "scraper"))
]


def with_argument(verb: str, parameter: Any, value: str, node: Path) -> list[str]:
    """Return a command line with one bad argument; all others are good."""
    group: Any = typer.main.get_command(command_line())
    given = {"source": "crex", "kind": "list", "file": os.devnull, "match": "1", "what": "1", "url": "x", "folder": "x"}
    words = [verb]
    for each in group.commands[verb].params:
        if each is parameter or each.name == parameter.name:
            words += [value] if each.param_type_name == "argument" else [f"{each.opts[0]}={value}"]
        elif each.param_type_name == "argument":
            words.append(str(node / "no such file") if each.name in ("folder", "files") else given[each.name])
        elif each.name == "data":
            words += ["--data", str(node)]
    return words


@pytest.mark.parametrize("value", [ARGUMENT, NOT_UTF_8], ids=["hostile", "not UTF-8"])
@pytest.mark.parametrize(("verb", "parameter"), TRIED)
def test_no_argument_is_printed_raw_or_ends_in_a_traceback(
    verb: str,
    parameter: Any,
    value: str,
    node: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSTOP_SOURCES", str(tmp_path / "none.yaml"))
    is_run = (verb, parameter.name) == ("token", "subject") and value == ARGUMENT

    code, text = ended(monkeypatch, capfd, *with_argument(verb, parameter, value, node))

    assert raw(text) == set()
    assert "Traceback" not in text
    assert code in (1, 2, 3, 64, 74, 78) or is_run


@pytest.mark.parametrize("words", [[ARGUMENT], [NOT_UTF_8], [f"--{ARGUMENT}"], ["matches", f"--{ARGUMENT}=1"]])
def test_an_unknown_verb_or_option_is_not_printed_raw(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text = ended(monkeypatch, capfd, *words)

    assert code == (64 if words == [NOT_UTF_8] else 2)
    assert raw(text) == set()


def test_on_a_terminal_a_wrong_option_brings_only_our_own_colours(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text = ended(monkeypatch, capfd, "matches", f"--{ARGUMENT}", FORCE_COLOR="1", TERM="xterm")

    assert code == 2
    assert raw(without_styles(text)) == set()


def test_bytes_of_a_shell_that_are_not_utf_8_are_a_wrong_command_line(node: Path) -> None:
    """A real process: the bytes pass through the interpreter."""
    words: list[str | bytes] = ["health", "--data", str(node), "--match", b"caf\xff"]

    done = subprocess.run([sys.executable, "-m", "longstop", *words], capture_output=True)

    assert done.returncode == Exit.USAGE
    assert done.stdout == b""
    assert is_one_sentence(done.stderr.decode())
    assert rb"caf\udcff" in done.stderr


# --- files that never end, and files of settings


@pytest.mark.parametrize("words", [("parse", "crex", "list"), ("verify",), ("restore", "--data", "new")])
@pytest.mark.parametrize("name", ["/dev/zero", "fifo", "folder", "huge", "/dev/full", "hostile\x1b[2J\u202e\n"])
def test_a_file_that_is_none_ends_a_verb_at_once(
    words: tuple[str, ...],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSTOP_SOURCES", "none.yaml")
    os.mkfifo("fifo")
    Path("folder").mkdir()
    with Path("huge").open("wb") as huge:
        huge.truncate(1 << 30)

    code, text = ended(monkeypatch, capfd, *words, name)

    assert code in (Exit.USAGE, Exit.STORAGE)
    assert is_one_sentence(text)


@pytest.mark.parametrize("variable", ["LONGSTOP_CONFIG", "LONGSTOP_SOURCES"])
@pytest.mark.parametrize("name", ["/dev/zero", "fifo", "."])
def test_settings_that_are_no_file_end_a_start_at_once(
    variable: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")

    code, text = ended(monkeypatch, capfd, "scraper", "--data", "data", **{variable: name})

    assert code == Exit.SETTINGS
    assert "it is not a regular file" in text
    assert is_one_sentence(text)


@pytest.mark.parametrize("content", ["nö\u202ede".encode(), b"n\xff", "名".encode()])
def test_a_node_id_that_is_not_ascii_is_a_sentence(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    node = a_node(tmp_path / "data").path
    (node / "node-id").write_bytes(content)

    code, text = ended(monkeypatch, capfd, "backup", str(tmp_path / "backup"), "--data", str(node))

    assert code == Exit.STORAGE
    assert "node-id is damaged: restore a backup" in text
    assert is_one_sentence(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LONGSTOP_API_PORT", ARGUMENT),
        ("LONGSTOP_API_PORT", NOT_UTF_8),
        ("LONGSTOP_DATA", ARGUMENT),
        ("LONGSTOP_DATA", NOT_UTF_8),
        ("LONGSTOP_CONFIG", ARGUMENT),
        ("LONGSTOP_CONFIG", NOT_UTF_8),
        ("LONGSTOP_SOURCES", ARGUMENT),
        (f"LONGSTOP_{ARGUMENT.replace('=', '')}", "1"),
        (f"LONGSTOP_{NOT_UTF_8}", "1"),
        ("NODE_ID", ARGUMENT),
        ("LOG_LEVEL", ARGUMENT),
    ],
)
def test_no_text_of_the_environment_is_printed_raw(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    code, text = ended(monkeypatch, capfd, "matches", **{name: value})

    assert code != 0
    assert raw(text) == set()
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "content",
    [
        '"\\e[31m\\u202e\\n\\nlongstop": 1',
        'api: {port: "\\e[31m\\u202e\\n"}',
        'data: "\\e[31m\\u202e\\u0085"',
        "api: [\u202e\u2028, ]\n\u200b: {",
        "a: \u202e\na: \u202e\n",
        "\u200b\u202e: {\u2066: 1}",
    ],
)
def test_no_text_of_a_settings_file_is_printed_raw(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content, encoding="utf-8")

    code, text = ended(monkeypatch, capfd, "matches", LONGSTOP_CONFIG=str(file))

    assert code != 0
    assert raw(text) == set()
