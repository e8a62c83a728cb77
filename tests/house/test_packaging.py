"""The recipes of packaging/ name what this tree has: versions, requirements, targets, components."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SPACK = (ROOT / "packaging/spack/packages/spinloom/package.py").read_text(encoding="utf-8")
CONDA = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
PINNED = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
CMAKE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("cmake/*.cmake"), *ROOT.glob("src/**/CMakeLists.txt")]
)


def oldest_cmake() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", text)[1]


def spack_value(name: str) -> object:
    for node in ast.walk(ast.parse(SPACK)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def spack_calls(name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(SPACK)) if isinstance(node, ast.Call)]
    return [call for call in calls if getattr(call.func, "id", "") == name]


def test_the_recipes_have_the_version_and_the_licence():
    project = PROJECT["project"]
    assert CONDA["context"]["version"] == project["version"]
    assert [call.args[0].value for call in spack_calls("version")] == [project["version"]]
    assert CONDA["about"]["license"] == project["license"]
    assert [call.args[0].value for call in spack_calls("license")] == [project["license"]]


def test_the_recipe_for_spack_names_components_and_targets_that_are_there():
    components = spack_value("COMPONENTS")
    assert set(components) == {call.args[0].value for call in spack_calls("variant")}
    c_libraries = set(re.findall(r"^spinloom_c_library\((\w+) ", CMAKE, re.MULTILINE))
    books = set(re.findall(r"^spinloom_manual\((\w+) ", CMAKE, re.MULTILINE))
    targets = {f"spinloom_{name}_library" for name in c_libraries} | {
        f"spinloom_man_{name}" for name in books
    }
    targets |= set(re.findall(r"add_(?:library|executable|custom_target)\((spinloom_\w+)", CMAKE))
    assert {"layout", *components} == c_libraries | set(re.findall(r"COMPONENT (mpi|portals)\)", CMAKE))
    assert {target for of_one in components.values() for target in of_one} <= targets


def test_the_recipe_for_spack_asks_for_the_tools_of_the_build():
    asked = {call.args[0].value for call in spack_calls("depends_on")}
    python = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert {f"cmake@{oldest_cmake()}:", f"python@{python}:", "c", "cxx"} == asked


def test_the_recipe_for_conda_asks_for_what_the_package_declares():
    scripts = " ".join(CONDA["build"]["script"])
    from_index = {Requirement(word).name for word in re.findall(r'"([\w-]+==[\d.]+)"', scripts)}
    assert all(word in PINNED for word in re.findall(r'"([\w-]+==[\d.]+)"', scripts))
    listed = {Requirement(line) for part in ("host", "run") for line in CONDA["requirements"][part]}
    declared = map(Requirement, [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]])
    for requirement in declared:
        assert requirement.name in from_index or requirement in listed, str(requirement)
    assert f"python {PROJECT['project']['requires-python']}" in CONDA["requirements"]["run"]
    assert f"cmake >={oldest_cmake()}" in CONDA["requirements"]["build"]


def test_nothing_says_that_spinloom_is_on_the_package_index():
    read = [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("python/**/*.py"),
        *ROOT.glob("man/*.toml"),
    ]
    wrong = re.compile(r"pip install (-U )?['\"]?spinloom(?![\w/*.-]*\.whl)")
    assert [path for path in read if wrong.search(path.read_text(encoding="utf-8"))] == []


def test_pinned_packages_run_on_the_python_of_debian_12():
    for line in PINNED:
        if found := re.match(r"([\w.-]+)==", line):
            allowed = importlib.metadata.metadata(found[1]).get("Requires-Python") or ""
            assert SpecifierSet(allowed).contains("3.11.2"), line
