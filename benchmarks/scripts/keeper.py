#!/usr/bin/env python3
"""Turns what KeeperBenchmark prints into docs/measurements/keeper.json.

Usage: mvn -B -q -pl benchmarks/micro -am -Pbenchmarks -DskipTests \
    -Dbenchmarks.main=io.zerohop.shuffle.bench.KeeperBenchmark test | benchmarks/scripts/keeper.py
"""

import json
import re
import sys

from jmh import measurement, record


def goals(rows):
    publish, hold, adopt = rows["publish"], rows["hold"], rows["adopt"]
    return [
        {
            "goal": "publishing with a keeper, times without (median of pairs)",
            "at_most": 1.03,
            "value": publish["ratio"],
        },
        {
            "goal": "resident bytes of a keeper of 1,000 segments",
            "at_most": 200_000_000,
            "value": hold["resident_bytes"],
        },
        {
            "goal": "cores of an idle keeper of 1,000 segments",
            "at_most": 0.01,
            "value": hold["idle_cores"],
        },
        {
            "goal": "seconds until 10,000 map outputs are served by the keeper",
            "at_most": 1,
            "value": adopt["seconds"],
        },
    ]


def main():
    # Maven may write codes of colours in front of a line.
    found = (re.search(r"\{.*\}", line) for line in sys.stdin)
    rows = [json.loads(one.group()) for one in found if one]
    goals_of_rows = goals({row["case"]: row for row in rows})
    record(measurement("keeper") | {"goals": goals_of_rows, "rows": rows})


if __name__ == "__main__":
    main()
