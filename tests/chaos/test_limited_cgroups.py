"""Where a test makes its control groups: where the controller is, in version 1 as in version 2."""

from pathlib import Path

import pytest

from longstop.process.cgroup_limits_and_kill import UNIFIED
from tests.chaos.limited_cgroups import Hierarchy, hierarchy_of, limited_group


def machine(root: Path, *, groups: str, folders: dict[str, str]) -> Path:
    """Lay out what a kernel shows; a folder is given with what `cgroup.controllers` says there."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, controllers in folders.items():
        folder = root / "sys/fs/cgroup" / name
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").touch()
        (folder / "cgroup.controllers").write_text(controllers)
        (folder / "cgroup.subtree_control").touch()
    return root


def test_version_two_has_all_controllers_at_its_top_and_has_to_switch_them_on(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        groups="0::/user.slice\n",
        folders={"": "cpu memory pids", "user.slice": "memory"},
    )

    found = hierarchy_of("pids", root)

    assert found == Hierarchy(folder=root / "sys/fs/cgroup", name=UNIFIED)
    found.switch_on("pids")
    assert (root / "sys/fs/cgroup/cgroup.subtree_control").read_text() == "+pids"


def test_beside_version_one_version_two_counts_only_for_what_it_has(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        groups="4:memory:/job/1\n0::/\n",
        folders={"memory": "", "memory/job": "", "memory/job/1": "", "unified": "hugetlb"},
    )

    assert hierarchy_of("pids", root) is None
    assert hierarchy_of("memory", root) == Hierarchy(folder=root / "sys/fs/cgroup/memory", name="memory")


def test_a_machine_without_groups_has_none(tmp_path: Path) -> None:
    root = machine(tmp_path, groups="", folders={})

    assert hierarchy_of("memory", root) is None


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
@pytest.mark.parametrize("groups", ["", "0::/\n"], ids=["no controller", "no right"])
def test_who_can_make_no_group_skips_the_test_but_fails_it_where_nothing_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    root = machine(tmp_path, groups=groups, folders={"": "pids"})
    switch = root / "sys/fs/cgroup/cgroup.subtree_control"
    switch.unlink()
    switch.mkdir()  # root may write everywhere, but not into a folder

    with pytest.raises(outcome), limited_group("pids", root):
        pass
