#!/usr/bin/env python3
"""Writes what simulations of up to a thousand executors have shown, and the tables of their page.

scale.py OUT.json COMMIT LINES: LINES is the file that -Dzerohop.scale.out named. The page is
docs/internals/scale-simulation.md, which has the command.
"""

import datetime
import json
import math
import pathlib
import sys

from kills import host
from measurements import write
from plot import replace_section
from tables import markdown

PAGE = pathlib.Path(__file__).resolve().parent / "../../docs/internals/scale-simulation.md"
LINEAR = 1.05
# Heap is measured, and the least of what is measured is a few objects of a test's own.
LINEAR_HEAP = 1.15
FEW = 16
# Fetches in the page; all are in the file.
SHOWN = (16, 128, 1000)


def exponent(points):
    """Least squares of log(y) over log(x): y grows as x to the power of it."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(logs) < 3:
        return None
    mean_x, mean_y = (sum(each) / len(logs) for each in zip(*logs))
    across = sum((x - mean_x) ** 2 for x, _ in logs)
    return round(sum((x - mean_x) * (y - mean_y) for x, y in logs) / across, 3)


def points(rows, over, what):
    return [(row[over], what(row)) for row in rows]


def growths(rows):
    """A row for each cost: what it grows with, its exponent, and the most that it may have."""
    reader, owner, few, fetch, control, driver = (
        [row for row in rows if row["case"] == case]
        for case in ("reader", "owner", "few", "fetch", "control", "driver")
    )
    small = [row for row in fetch if row["block_bytes"] == min(row["block_bytes"] for row in fetch)]
    found = [
        (
            "connections of a reader",
            "peers",
            LINEAR,
            points(reader, "peers", lambda row: row["connections"]),
        ),
        (
            "endpoints of a reader",
            "peers",
            LINEAR,
            points(reader, "peers", lambda row: row["endpoints"]),
        ),
        (
            "bytes of a reader's first contacts by UCX",
            "peers",
            LINEAR,
            points(reader, "peers", lambda row: row["contact_bytes"]),
        ),
        (
            "questions of a reader's first contacts",
            "peers",
            LINEAR,
            points(reader, "peers", lambda row: row["contact_questions"]),
        ),
        (
            "heap of a reader and its owners for each other",
            "peers",
            LINEAR_HEAP,
            points(reader, "peers", lambda row: row["pair_heap_bytes"] * row["peers"]),
        ),
        (
            "processor time to route a reduce task to its first block",
            "peers",
            LINEAR,
            points(reader, "peers", lambda row: row["route_us"]),
        ),
        (
            "connections of an owner",
            "peers",
            LINEAR,
            points(owner, "peers", lambda row: row["connections"]),
        ),
        (
            "heap of an owner and its readers for each other",
            "peers",
            LINEAR_HEAP,
            points(owner, "peers", lambda row: row["pair_heap_bytes"] * row["peers"]),
        ),
        (
            "questions of a fetch of small blocks",
            "peers",
            LINEAR,
            points(small, "peers", lambda row: row["questions"]),
        ),
        (
            "bytes of questions and answers of such a fetch",
            "peers",
            LINEAR,
            points(small, "peers", lambda row: row["control_bytes"]),
        ),
        (
            "descriptors of control connections, both ends",
            "peers",
            LINEAR,
            points(control, "peers", lambda row: row["descriptors_more"]),
        ),
        (
            "heap of control connections, both ends",
            "peers",
            LINEAR_HEAP,
            points(control, "peers", lambda row: row["pair_heap_bytes"] * row["peers"]),
        ),
        (
            f"connections of a reader of {FEW} executors",
            "executors",
            0.05,
            points(
                [row for row in few if row["peers"] == FEW],
                "executors",
                lambda row: row["connections"],
            ),
        ),
        (
            "bytes that locations add to map statuses",
            "executors",
            LINEAR,
            points(driver, "executors", lambda row: row["location_bytes"]),
        ),
        (
            "processor time to list a reduce task's blocks by owner",
            "executors",
            LINEAR,
            points(driver, "executors", lambda row: row["plan_us"]),
        ),
    ]
    return [
        {"case": "growth", "what": what, "over": over, "exponent": exponent(pairs), "at_most": most}
        for what, over, most, pairs in found
    ]


def largest(rows, case):
    return max((row for row in rows if row["case"] == case), key=lambda row: row["executors"])


def incast(rows, scenario):
    return {
        row["what"]: row for row in rows if row["case"] == "incast" and row["scenario"] == scenario
    }


def goals(rows):
    reader = [row for row in rows if row["case"] == "reader"]
    most = largest(rows, "reader")
    found = [
        {
            "goal": f"growth with {row['over']}: {row['what']}",
            "at_most": row["at_most"],
            "value": row["exponent"],
        }
        for row in rows
        if row["case"] == "growth"
    ]
    found.append(
        {
            "goal": "executors of the largest simulation",
            "at_least": 1000,
            "value": most["executors"],
        }
    )
    found.append(
        {
            "goal": "threads more of all executors together when eight have connected to all others",
            "at_most": 10,
            "value": max(row["threads_more"] for row in reader),
        }
    )
    found.append(
        {
            "goal": "first contact, MB a peer, largest simulation",
            "at_most": 0.5,
            "value": round(most["contact_bytes"] / most["peers"] / 1e6, 3),
        }
    )
    found.append(
        {
            "goal": "owners that a reader has connected to before its first block",
            "at_most": 16,
            "value": max(row["contacts_before_first_block"] for row in reader),
        }
    )
    small = [
        row for row in rows if row["case"] == "fetch" and row["peers"] and row["block_bytes"] == 64
    ]
    found.append(
        {
            "goal": "questions for each owner of a fetch of small blocks",
            "at_most": 2,
            "value": round(
                max(
                    row["questions"]
                    / row["peers"]
                    / max(1, math.ceil(row["blocks"] / row["executors"] / 1024))
                    for row in small
                ),
                3,
            ),
        }
    )
    found.append(
        {
            "goal": "bytes of a map status, sent, that locations add, largest simulation",
            "at_most": 10,
            "value": round(
                largest(rows, "driver")["location_bytes"] / largest(rows, "driver")["maps"], 2
            ),
        }
    )
    stage, crowd = incast(rows, "stage"), incast(rows, "crowd")
    found.append(
        {
            "goal": "model: 99th percentile of a fetch, owners as listed over owners turned",
            "at_least": 1.2,
            "value": round(
                stage["owners as listed"]["p99_ms"] / stage["owners turned"]["p99_ms"], 2
            ),
        }
    )
    found.append(
        {
            "goal": "model: the same of small fetches beside a large reader, first come first served over turns",
            "at_least": 2,
            "value": round(
                crowd["first come first served, windows"]["p99_ms"]
                / crowd["in turns, windows"]["p99_ms"],
                2,
            ),
        }
    )
    return found


def number(value, digits=0):
    return f"{value:,.{digits}f}"


def page(rows):
    reader = [row for row in rows if row["case"] == "reader"]
    readers = markdown(
        [
            "executors on nodes",
            "read by UCX",
            "connections",
            "heap a peer, bytes",
            "threads an executor",
            "threads more",
            "first contact, kB a peer",
            "questions of it a peer",
            "met before the first block",
            "to the first block when met, us of processor time",
        ],
        [
            [
                f"{row['executors']} on {row['nodes']}",
                number(row["peers"]),
                number(row["connections"]),
                number(row["pair_heap_bytes"]),
                number(row["threads_each"], 1),
                number(row["threads_more"]),
                number(row["contact_bytes"] / row["peers"] / 1e3),
                number(row["contact_questions"] / row["peers"], 1),
                number(row["contacts_before_first_block"]),
                number(row["route_us"]),
            ]
            for row in reader
            if row["peers"]
        ],
    )
    owners = markdown(
        [
            "executors, one of which has all map outputs",
            "readers",
            "connections",
            "heap a reader, bytes",
            "threads more",
        ],
        [
            [
                number(row["executors"]),
                number(row["peers"]),
                number(row["connections"]),
                number(row["pair_heap_bytes"]),
                number(row["threads_more"]),
            ]
            for row in rows
            if row["case"] == "owner" and row["peers"]
        ],
    )
    each = next(row["bytes_per_block"] for row in rows if row["case"] == "catalog")
    owners += f"\n\nA block that is not empty takes {each:.1f} bytes of its owner's catalog, room that is left in chunks included; 10,000 map outputs of 10,000 such blocks {number(each * 1e2)} MB of all executors together."
    fetches = markdown(
        [
            "executors, bytes of a block",
            "read by UCX",
            "questions",
            "of them a peer",
            "kB of them and their answers",
            "bytes a block of these",
        ],
        [
            [
                f"{row['executors']}, {number(row['block_bytes'])}",
                number(row["peers"]),
                number(row["questions"]),
                number(row["questions"] / row["peers"], 1),
                number(row["control_bytes"] / 1e3),
                number(row["control_bytes"] * row["executors"] / row["blocks"] / row["peers"]),
            ]
            for row in rows
            if row["case"] == "fetch" and row["peers"] and row["executors"] in SHOWN
        ],
    )
    controls = markdown(
        [
            "control connections over TCP",
            "descriptors, both ends",
            "heap a connection, both ends, bytes",
            "direct memory of all, kB",
            "threads more",
            "us to connect",
        ],
        [
            [
                number(row["peers"]),
                number(row["descriptors_more"]),
                number(row["pair_heap_bytes"]),
                number(row["direct_bytes_more"] / 1e3),
                number(row["threads_more"]),
                number(row["connect_us"]),
            ]
            for row in rows
            if row["case"] == "control"
        ],
    )
    drivers = markdown(
        [
            "executors",
            "map statuses as sent, kB",
            "of it locations, kB",
            "locations on the driver",
            "Spark lists a task's blocks, us of processor time",
            "with ours, us",
        ],
        [
            [
                number(row["executors"]),
                number(row["statuses_bytes"] / 1e3),
                number(row["location_bytes"] / 1e3, 1),
                number(row["locations"]),
                number(row["spark_plan_us"]),
                number(row["plan_us"]),
            ]
            for row in rows
            if row["case"] == "driver"
        ],
    )
    grown = markdown(
        ["cost", "grows with", "exponent", "at most"],
        [
            [
                row["what"],
                row["over"],
                "-" if row["exponent"] is None else f"{row['exponent']:.2f}",
                f"{row['at_most']:.2f}",
            ]
            for row in rows
            if row["case"] == "growth"
        ],
    )
    crowds = markdown(
        ["model", "median fetch, ms", "99th percentile, ms", "all done, ms"],
        [
            [
                f"{row['scenario']}: {row['what']}",
                number(row["p50_ms"], 3),
                number(row["p99_ms"], 3),
                number(row["stage_ms"], 1),
            ]
            for row in rows
            if row["case"] == "incast"
        ],
    )
    return {
        "growth": grown,
        "readers": readers,
        "owners": owners,
        "fetches": fetches,
        "controls": controls,
        "drivers": drivers,
        "incast": crowds,
    }


def main(out, commit, lines):
    rows = [json.loads(line) for line in open(lines)]
    rows += growths(rows)
    write(
        out,
        {
            "bench": "scale",
            "commit": commit,
            "date": datetime.date.today().isoformat(),
            "host": host()
            | {"executors": "played in one virtual machine; UCX and the network are not real"},
            "goals": goals(rows),
            "rows": rows,
        },
    )
    text = PAGE.read_text()
    for section, content in page(rows).items():
        text = replace_section(text, f"scale-{section}", content)
    PAGE.write_text(text)
    for goal in goals(rows):
        print(goal)


if __name__ == "__main__":
    main(*sys.argv[1:])
