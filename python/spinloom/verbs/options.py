"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable

import click


def form_options(function: Callable) -> Callable:
    """--json and --csv as the argument `form`: 'json', 'csv' or 'table'."""
    function = click.option("--csv", "form", flag_value="csv", help="Print CSV, long format.")(function)
    function = click.option("--json", "form", flag_value="json", help="Print JSON.")(function)
    return click.option("--table", "form", flag_value="table", default="table", hidden=True)(function)
