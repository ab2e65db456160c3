import os
from pathlib import Path

import pytest

from longstop.api.secret import SECRET_BYTES, Secret
from longstop.errors import UsageError


def test_a_new_secret_is_random_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    first = Secret.load_or_create(tmp_path / "one")
    second = Secret.load_or_create(tmp_path / "two")

    assert len(first.key) == SECRET_BYTES
    assert first.key != second.key
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_secret_that_exists_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    created = Secret.load_or_create(path)

    loaded = Secret.load_or_create(path)

    assert loaded.key == created.key


def test_the_one_who_comes_second_takes_the_first_ones_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    first = Secret.load_or_create(path)
    monkeypatch.setattr(os.path, "lexists", lambda _path: False)

    second = Secret.load_or_create(path)

    assert second.key == first.key
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_secret_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    Secret.load_or_create(path)
    path.chmod(mode)

    with pytest.raises(UsageError, match="chmod 600"):
        Secret.load_or_create(path)


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    Secret.load_or_create(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(UsageError, match="symbolic link"):
        Secret.load_or_create(tmp_path / "link")


def test_a_dangling_link_is_refused_and_nothing_is_made_behind_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(UsageError, match="symbolic link"):
        Secret.load_or_create(tmp_path / "link")

    assert not (tmp_path / "nowhere").exists()


def test_a_pipe_in_its_place_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)

    with pytest.raises(UsageError, match="regular file"):
        Secret.load_or_create(tmp_path / "pipe")


@pytest.mark.parametrize(("content", "sentence"), [("not hex", "hexadecimal"), ("abcd", "32 bytes"), ("", "32 bytes")])
def test_a_damaged_secret_is_refused_with_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "secret"
    path.write_text(content)
    path.chmod(0o600)

    with pytest.raises(UsageError, match=sentence):
        Secret.load_or_create(path)


def test_a_missing_directory_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Secret.load_or_create(tmp_path / "absent" / "secret")


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(b"canary-canary-canary-canary-canary")

    assert "canary" not in repr(secret)
    assert "canary" not in f"{secret}"
