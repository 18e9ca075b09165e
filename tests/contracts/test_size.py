"""The ceilings on the size of the package."""

from collections import Counter

from contracts.size import CEILINGS, above, counted


def test_the_package_is_below_its_ceilings_which_are_near_so_that_they_only_go_down():
    total = sum(counted().values(), Counter())
    assert above(total, CEILINGS) == [], "`python -m contracts.size` lists the folders. Say what goes."
    assert {name: total[name] for name, most in CEILINGS.items() if total[name] < 0.97 * most} == {}, "lower CEILINGS in contracts/size.py"


def test_lines_files_functions_and_code_are_counted_by_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text('"""Doc."""\n\nimport os\nfrom b import (\n    c,\n)\n\n\ndef f():\n    # why\n    return os, c\n')
    assert counted(tmp_path) == {"a": Counter(lines=11, files=1, functions=1, code=2)}
    assert above({"lines": 11, "files": 1}, {"lines": 10, "files": 1}) == ["11 lines, at most 10 are allowed"]
