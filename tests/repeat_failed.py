"""Run pytest, and repeat each failed test once, alone: `python -m tests.repeat_failed FLAKY ARGUMENT…`.

For tests that start whole systems and can fail because the machine is busy. A test that passes only the second time is
printed as `flaky: …`, written to the file FLAKY, and counts as passed; one that fails twice fails the run. Whatever
else goes wrong (collection, a killed pytest, an internal error) fails the run at once: there is no test to repeat.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


def main(flaky: Path, arguments: list[str]) -> int:
    """Return the exit code of the run; node ids of flaky tests are appended to the file."""
    with TemporaryDirectory(prefix="longstop-repeat-") as cache:
        code = run_pytest(cache, arguments)
        failed = failed_tests(Path(cache))
        if code != pytest.ExitCode.TESTS_FAILED or not failed:
            return code
        if broken := [name for name in failed if "::" not in name]:
            print(f"not repeated, as these could not be collected: {', '.join(broken)}", flush=True)
            return code
        print(f"repeating {len(failed)} failed, one after the other", flush=True)
        failed_twice = []
        for name in failed:
            if run_pytest(cache, [name]) == pytest.ExitCode.OK:
                print(f"flaky: {name}", flush=True)
                with flaky.open("a", encoding="utf-8") as lines:
                    lines.write(f"{name}\n")
            else:
                failed_twice.append(name)
    for name in failed_twice:
        print(f"failed twice: {name}", flush=True)
    return code if failed_twice else 0


def run_pytest(cache: str, arguments: list[str]) -> int:
    """Return pytest's exit code; killed by a signal counts as an internal error."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    process = subprocess.Popen(command)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C has reached pytest too: it cleans up
        raise
    return code if code >= 0 else int(pytest.ExitCode.INTERNAL_ERROR)


def failed_tests(cache: Path) -> list[str]:
    """Return the node ids of the tests that failed; none when pytest did not come to its end."""
    file = cache / "v" / "cache" / "lastfailed"
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
