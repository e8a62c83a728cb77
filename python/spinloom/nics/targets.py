"""The datatype that a person names: an application's, an object of a Python file, a report's, or a text form.

Contract: resolve() takes what `spinloom explain` takes, of_object() what Python has. Both raise Trouble with
a sentence that says what would do.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from spinloom import layout
from spinloom.common import core, documents
from spinloom.errors import Trouble
from spinloom.layout.numpy_types import indices_hint
from spinloom.nics import workloads
from spinloom.nics.workloads import Row

MODULE = "spinloom_explained"  # the name under which a FILE.py is run
NAMES_SHOWN = 6
REPORT_FORMAT = 1  # the format of docs/formats/mpi-report.md


def resolve(target: str, count: int) -> Row:
    """APPLICATION[:DATATYPE], FILE.py:OBJECT, FILE.json:NUMBER (a report), or a text form. Raises Trouble."""
    file, colon, name = target.rpartition(":")
    if colon and file.endswith(".py"):
        return of_object(load_object(Path(file), name), target, count)
    if colon and file.endswith(".json"):
        row = row_in(Path(file), name)
        return Row(target, "", row["text"], (row["count"] or 1) * count)
    if target.endswith(".py"):
        raise Trouble("invalid", f"say which object of {target}: {target}:OBJECT")
    if target.endswith(".json"):
        raise Trouble("invalid", f"say which datatype of {target}: {numbers_in(Path(target))}")
    names = {application.name.casefold() for application in workloads.applications()}
    application, colon, datatype = target.partition(":")
    if application.casefold() in names or ("(" not in target and not is_type(target)):
        return of_workload(application, datatype if colon else None, count)
    check(target)
    return Row("custom", target if len(target) <= 32 else target[:29] + "...", target, count)


def is_type(text: str) -> bool:
    try:
        check(text)
    except Trouble:
        return False
    return True


def check(text: str) -> None:
    engine = core.load()
    try:
        engine.check_type(text)
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None


def of_workload(application: str, datatype: str | None, count: int) -> Row:
    if datatype is not None:
        row = workloads.row(application, datatype)
    else:
        rows = workloads.application(application).rows
        row = rows[0]
        if len(rows) > 1:
            names = ", ".join(f"'{application}:{each.datatype}'" for each in rows)
            raise Trouble("invalid", f"{application} has {len(rows)} datatypes; say which: {names}")
    return Row(row.application, row.datatype, row.type, row.count * count, source=row.source)


def load_object(file: Path, name: str) -> Any:
    """The object of a Python file, or what it returns when it is a function.

    The file is run as a module that is not __main__; what it prints goes to stderr.
    """
    spec = importlib.util.spec_from_file_location(MODULE, file)
    if not file.exists():
        raise Trouble("invalid", f"there is no file '{file}'")
    if spec is None or spec.loader is None:
        raise Trouble("invalid", f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses look there
    sys.path.insert(0, str(file.resolve().parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
            if not hasattr(module, name):
                raise Trouble("invalid", f"{file} has no '{name}'")
            value = getattr(module, name)
            return value() if callable(value) and not isinstance(value, type) else value
    except Trouble:
        raise
    except (Exception, SystemExit) as error:
        raise Trouble("invalid", f"{file}:{name} ends with {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)


def of_object(value: Any, target: str, count: int) -> Row:
    """A Layout, a text form, a NumPy array or dtype, or a datatype of mpi4py."""
    if isinstance(value, str):
        check(value)
        text = value
    elif isinstance(value, layout.Layout):
        text = value.text
    elif isinstance(value, type):  # this is a class, not one of its objects
        raise not_a_datatype(value, target)
    elif hasattr(value, "strides") and hasattr(value, "dtype"):
        text = layout.from_array(value).text
    elif hasattr(value, "itemsize") and hasattr(value, "fields"):
        text = layout.from_dtype(value).text
    elif hasattr(value, "Get_envelope"):
        text = layout.from_mpi(value).text
    else:
        raise not_a_datatype(value, target)
    return Row(target, "", text, count)


def not_a_datatype(value: Any, target: str) -> Trouble:
    return Trouble(
        "invalid",
        f"{target} is a {type(value).__name__}; it must be a Layout, a text form, a NumPy array "
        f"or dtype, or a datatype of mpi4py{indices_hint([value])}",
    )


def row_in(file: Path, number: str) -> dict[str, Any]:
    """A type of a report. Raises Trouble('invalid')."""
    rows = rows_in(file)
    row = rows.get(int(number)) if number.isascii() and number.isdigit() else None
    if row is None:
        raise Trouble(
            "invalid", f"{file} has no datatype {number} whose text is known; there is {numbers_in(file)}"
        )
    return row


def numbers_in(file: Path) -> str:
    """The datatypes of a report that can be explained, as a user types them: 'a.json:1 or a.json:4'."""
    return listed([f"{file}:{number}" for number in rows_in(file)])


def rows_in(file: Path) -> dict[int, dict[str, Any]]:
    """The types of a report whose text is known, by number. Raises Trouble('invalid') if there are none."""
    document = documents.json(file)
    try:
        types = document["types"] if document["format"] == REPORT_FORMAT else []
        rows = {number: row for number, row in enumerate(types) if row["kind"] == "derived" and row["whole"]}
    except (KeyError, TypeError):
        rows = {}
    if not rows:
        raise Trouble(
            "invalid",
            f"{file} has no datatype whose text is known; 'spinloom run --report=FILE.json' writes reports",
        )
    return rows


def listed(names: list[str]) -> str:
    """The first names: 'a', 'a or b', 'a, b, ... or z'."""
    shown = names if len(names) <= NAMES_SHOWN else [*names[: NAMES_SHOWN - 2], "...", names[-1]]
    return " or ".join([part for part in (", ".join(shown[:-1]), shown[-1]) if part])
