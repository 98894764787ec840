"""Writes what a fuzz of the parsers found as a measurement: fuzz.py LINES COMMIT OUT.

LINES is the file that -Dzerohop.fuzz.out named; a parser that did what it must not has failed its
test and is not in it."""

import datetime
import json
import sys

from measurements import write

LEAST = 1_000_000


def main(lines, commit, out):
    rows = [json.loads(line) for line in open(lines)]
    goals = [{"goal": f"cases of {row['parser']}", "at_least": LEAST, "value": row["cases"]} for row in rows]
    today = datetime.date.today().isoformat()
    write(out, {"bench": "fuzz", "commit": commit, "date": today, "host": {}, "goals": goals, "rows": rows})


if __name__ == "__main__":
    main(*sys.argv[1:])
