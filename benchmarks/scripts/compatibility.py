#!/usr/bin/env python3
"""Writes what binding against releases of RAPIDS has shown as a measurement: compatibility.py ROWS COMMIT OUT

ROWS is the rows.jsonl of checks/rapids_cells.sh. For the releases that are known by their source alone, what the
table of signatures says of them is added. The page of docs/compatibility.md is drawn from OUT by
mvn -B -pl plugin -am test -Dzerohop.docs.write=true."""

import datetime
import json
import pathlib
import sys

from measurements import write

PLUGIN = pathlib.Path(__file__).resolve().parents[2] / "plugin/src"
MATRIX = PLUGIN / "main/resources/io/zerohop/spark/rapids/compatibility.json"
SIGNATURES = PLUGIN / "test/resources/rapids-signatures.tsv"
NEEDED = ("SHUFFLE", "ENV_OF_CONF")


def by_source(release, table):
    """A row about a release whose jar nobody has run."""
    at = table[0].index(release)
    needed = [line for line in table[1:] if line[0].split(" ")[0] in NEEDED]
    found = sum(line[at] == "+" for line in needed)
    return {
        "case": "source",
        "rapids": release,
        "wanted": len(needed),
        "found": found,
        "bound": found == len(needed),
    }


def main(rows, commit, out):
    matrix = json.loads(MATRIX.read_text())
    table = [line.split("\t") for line in SIGNATURES.read_text().splitlines()]
    bound = [json.loads(line) for line in pathlib.Path(rows).read_text().splitlines()]
    source = [
        by_source(release["release"], table)
        for release in matrix["releases"]
        if release["basis"] == "source"
    ]
    goals = [
        {
            "goal": "cells of the matrix whose real classes bind",
            "at_least": len(matrix["cells"]),
            "value": sum(row["bound"] for row in bound),
        },
        {
            "goal": "releases between whose source has all that is bound",
            "at_least": len(source),
            "value": sum(row["bound"] for row in source),
        },
    ]
    write(
        out,
        {
            "bench": "compatibility",
            "commit": commit,
            "date": datetime.date.today().isoformat(),
            "host": {},
            "goals": goals,
            "rows": bound + source,
        },
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
