#!/usr/bin/env python3
"""Writes what a run of the fuzz tests found as a measurement: fuzz.py OUT.json COMMIT LINES ...

LINES are the files target/fuzz/fuzz.jsonl that -Pfuzz leaves in the modules.
"""

import datetime
import json
import sys

from kills import host
from measurements import write

MIN_SECONDS = 300


def main(out, commit, *files):
    rows = [json.loads(line) for file in files for line in open(file)]
    goals = [
        {
            "goal": "inputs that a test failed with",
            "at_most": 0,
            "value": sum(row["findings"] for row in rows),
        },
        {
            "goal": "seconds of each test",
            "at_least": MIN_SECONDS,
            "value": min(row["seconds"] for row in rows),
        },
    ]
    today = datetime.date.today().isoformat()
    write(
        out,
        {
            "bench": "fuzz",
            "commit": commit,
            "date": today,
            "host": host(),
            "goals": goals,
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
