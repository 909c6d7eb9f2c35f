"""The benchmark with a real small model, without the model."""

from benchmarks.real_model.__main__ import HERE, ROOT


def test_its_files_are_where_it_looks_for_them() -> None:
    assert {each.name for each in HERE.iterdir()} >= {"serve.py", "tools", "results.md", "requirements.lock"}
    assert (ROOT / "pyproject.toml").exists()
