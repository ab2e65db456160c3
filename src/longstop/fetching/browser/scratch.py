"""Where browsers and drivers put their temporary files: a directory of the node's own, so that all in it is ours."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "longstop-"


def open_scratch(root: Path, node: str) -> Path:
    """Make the node's directory, or take it again; one that somebody else has put there is not used.

    Its path is short: Chromium makes a socket in it, and the kernel allows such a path a hundred characters.
    """
    path = root / f"{PREFIX}{node.removeprefix('node-')[:12]}"
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.geteuid():
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    return path


def clear_scratch(path: Path, now: float, older_than_seconds: float = 0.0) -> int:
    """Take away what was last changed so long ago that nobody who lives can have made it; return how much it was."""
    left = 0
    for entry in os.scandir(path) if path.is_dir() else ():
        with suppress(OSError):
            if now - entry.stat(follow_symlinks=False).st_ctime >= older_than_seconds:
                _remove(Path(entry.path))
                left += 1
    return left


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
