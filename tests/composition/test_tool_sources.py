"""What a folder of tools may hold: files, shared code, scripts, tests, data; and packages in place of folders."""

from pathlib import Path

from tests.command_line import run
from tests.composition.test_tools_path import DICE, lines_of_start, write


def test_a_file_is_a_module_like_a_package_with_its_settings_and_faults(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", {"dice.py": DICE})
    run_dice = ("tools", "run", "castDice", "sides=1")
    assert run(*run_dice, cwd=tmp_path, TOOLS_PATH=str(folder)).stdout == "cast 1\n"
    listed = run("tools", cwd=tmp_path, TOOLS_PATH=str(folder), DICE_ENABLED="false").stdout
    assert "Dice (/dice): switched off: set DICE_ENABLED=true" in listed


def test_the_folder_tools_is_loaded_if_no_variable_names_another(tmp_path: Path) -> None:
    write(tmp_path / "tools", {"dice/__init__.py": DICE})
    assert "Dice (/dice): registered" in run("tools", cwd=tmp_path).stdout.splitlines()
    other = write(tmp_path / "other", {"prices/__init__.py": DICE})
    assert "Dice (/dice)" not in run("tools", cwd=tmp_path, TOOLS_PATH=str(other)).stdout


def test_an_installed_package_is_named_instead_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"shop/__init__.py": "", "shop/tools/__init__.py": "", "shop/tools/dice/__init__.py": DICE})
    done = run("tools", "run", "castDice", "sides=1", cwd=tmp_path, TOOLS_PATH="shop.tools")
    assert (done.returncode, done.stdout) == (0, "cast 1\n")
    for name in ("shop.nothing", "nothing.tools"):
        assert lines_of_start(tmp_path, name) == [
            f"toolchat: TOOLS_PATH: there is neither a folder nor an installed package {name}"
        ]


def test_a_folder_within_a_package_is_loaded_under_the_names_by_which_its_code_imports_it(tmp_path: Path) -> None:
    files = {"shop/__init__.py": "", "shop/tools/__init__.py": "", "shop/sides.py": "SIDES = 4"}
    source = "import sys\nfrom shop.tools.dice import faces\n" + DICE
    source = source.replace('f"cast {sides}"', "' '.join(name for name in sys.modules if name.endswith('dice'))")
    write(tmp_path, {**files, "shop/tools/dice/__init__.py": source})
    write(tmp_path, {"shop/tools/dice/faces.py": "from ...sides import SIDES"})
    for tools_path in ("shop.tools", "shop/tools", "shop.tools:shop/tools", "shop/tools:shop.tools"):
        done = run("tools", "run", "castDice", cwd=tmp_path, TOOLS_PATH=tools_path)
        assert (done.returncode, done.stdout) == (0, "shop.tools.dice\n"), done.stderr


def test_what_tools_need_and_cannot_be_created_is_named_with_its_error(tmp_path: Path) -> None:
    source = DICE.replace(
        "module = ToolModule(",
        "def database() -> bytes:\n    raise OSError('no database')\n\n\n"
        "class Rows:\n    def __init__(self, data: bytes) -> None: ...\n\n\n"
        "module = ToolModule(provides=(database, Rows), advisors=(), ",
    )
    source += "\n\nfrom toolchat import tool\n\n\nclass Tools:\n    def __init__(self, rows: Rows) -> None: ...\n\n"
    source += "    @tool\n    def rows(self) -> str:\n        return ''\n\n\nfrom dataclasses import replace\n\n"
    source += "module = replace(module, methods=(Tools,))\n"
    folder = write(tmp_path / "own", {"dice.py": source})
    lines = lines_of_start(tmp_path, str(folder))
    assert lines[-1] == "toolchat: own/dice.py: cannot be created: OSError (line 11)"


def test_two_folders_cannot_both_have_shared_code_of_one_name(tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, {"_money.py": f"RATE = '{name}'"}) for name in ("one", "two"))
    assert lines_of_start(tmp_path, f"{one}:{two}") == [
        f"toolchat: two/_money: rename it, since {one}/_money.py has this name, too"
    ]


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", {"dice.py": DICE})
    (folder / "coins.py").symlink_to("nothing.py")
    assert lines_of_start(tmp_path, str(folder)) == [
        "toolchat: own/coins.py: cannot be read: No such file or directory"
    ]


def test_a_folder_of_tools_may_be_a_package_and_a_folder_without_one_is_named(tmp_path: Path) -> None:
    files = {"__init__.py": "", "dice.py": DICE, "coins/coins.py": DICE, "tests/help.py": DICE, "data/prices.csv": ""}
    done = run("tools", cwd=tmp_path, TOOLS_PATH=str(write(tmp_path / "own", files)))
    assert "Dice (/dice): registered" in done.stdout
    assert [line for line in done.stderr.splitlines() if "is not loaded" in line] == [
        "toolchat: WARNING: own/coins: is not loaded, since it has no __init__.py"
    ]


SHARED = {"_money/__init__.py": "RATE = 3", "_units.py": "from _money import RATE"}


def test_modules_share_code_whose_name_begins_with_an_underscore(tmp_path: Path) -> None:
    dice = "from _units import RATE\n" + DICE.replace('f"cast {sides}"', "str(RATE * sides)")
    coins = "from _money import RATE\n" + DICE.replace("castDice", "tossCoin")
    folder = write(tmp_path / "own", {**SHARED, "dice/__init__.py": dice, "coins.py": coins})
    done = run("tools", "run", "castDice", "sides=2", cwd=tmp_path, TOOLS_PATH=str(folder))
    assert (done.returncode, done.stdout, "is not loaded" in done.stderr) == (0, "6\n", False)


def test_a_script_beside_the_modules_is_named_and_not_run(tmp_path: Path) -> None:
    files = {"dice.py": DICE, "deploy.py": "raise SystemExit(9)", "test_dice.py": "1 / 0", "conftest.py": "1 / 0"}
    done = run("tools", cwd=tmp_path, TOOLS_PATH=str(write(tmp_path / "own", files)))
    assert "Dice (/dice): registered" in done.stdout
    (warning,) = [line for line in done.stderr.splitlines() if "is not loaded" in line]
    assert warning.endswith(
        "own/deploy.py: is not loaded, since it has no ToolModule; begin the name of shared code with _"
    )
