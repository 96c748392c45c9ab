"""The command line's own documents: JSON and CSV."""

import csv
import io
import json
import os
from functools import cache

from facts import Skip, Wrong, same

# Commands whose JSON is checked. Of long tables some rows, because the checker is slow.
QUESTIONS = [
    ["calls"],
    ["info"],
    ["paths"],
    ["trace", "--level", "call", "--limit", "300"],
    ["state", "--at", "50%"],
    ["cfg", "--function", "main"],
    ["profile", "--by", "function"],
    ["profile", "--by", "line", "--limit", "300"],
    ["profile", "--by", "block", "--limit", "300"],
    ["profile", "--by", "edge", "--limit", "300"],
    ["profile", "--by", "instruction", "--limit", "300"],
    ["slice", "--at", "LINE"],
    ["why", "--at", "LINE"],
]


def schemas(run):
    """JSON, by its published schema, in PyPI's or Debian's jsonschema."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise Skip("jsonschema is not installed (apt-get install python3-jsonschema)") from None
    compared = 0

    @cache
    def validator(name):
        with open(os.path.join(run.schemas, f"{name}.schema.json")) as file:
            return Draft202012Validator(json.load(file))

    for question in QUESTIONS:
        text = run.ask(question[0], *(run.line if word == "LINE" else word for word in question[1:]), "--format", "json")
        # Some are one document, others a document and rows.
        rows = text.splitlines()
        document = json.loads(rows[0])
        name = document["schema"].split("/")[1]
        for kind, one in [("", document)] + [(".rows", json.loads(row)) for row in rows[1:]]:
            for error in validator(name + kind).iter_errors(one):
                raise Wrong(f"{' '.join(question)}: {error.json_path}: {error.message[:300]}")
            compared += 1
    return f"{compared} documents and rows of {len(QUESTIONS)} questions"


def rows(run):
    """CSV: the same rows as in JSON, in Python's reader."""
    compared = 0
    for by in ["function", "line", "block", "edge", "instruction"]:
        compared += table(run, "rows", "profile", "--by", by, "--code", "all")
    compared += table(run, "edges", "calls")
    return f"{compared} rows of 6 tables"


def table(run, key, *question):
    document = run.json(*question)[key]
    read = list(csv.DictReader(io.StringIO(run.ask(*question, "--format", "csv")), strict=True))
    same(f"{' '.join(question)}: rows", len(read), len(document))
    for number, (theirs, ours) in enumerate(zip(read, document)):
        ours = flat(ours)
        differing = [column for column, cell in theirs.items() if cell != ours.get(column, "")]
        if differing:
            raise Wrong(f"{' '.join(question)}: row {number}: {differing}: {theirs}, but {ours}")
    return len(read)


def flat(row):
    """A row of JSON as the cells of CSV."""
    cells = {}
    for key, value in row.items():
        if key == "source":
            cells |= {name: str(part) for name, part in (value or {}).items()}
        elif isinstance(value, dict):
            cells |= {key: str(value["index"]), ("name" if key == "function" else f"{key}_name"): value["name"]}
        elif isinstance(value, bool):
            cells[key] = str(value).lower()
        elif value is not None:
            cells[key] = str(value)
    return cells
