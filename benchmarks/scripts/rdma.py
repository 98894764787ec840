#!/usr/bin/env python3
"""Writes what the virtual machines with a software RDMA adapter have shown.

Its tables go into docs/internals/rdma-evidence.md.

rdma.py OUT.json COMMIT FOLDER: FOLDER is that of rdma.sh, behind `mvn -B verify -Prdma`.
"""

import datetime
import json
import pathlib
import sys
import xml.etree.ElementTree as xml

from measurements import write
from plot import replace_section
from tables import markdown

REPORT = "TEST-junit-jupiter.xml"
LIMIT_SECONDS = 1800
JOBS = 4  # of rdma.sh all
WHOLE = "whole"  # its line for all of them together
PACKAGE = "io.zerohop.shuffle.transport.ucx."
PAGE = pathlib.Path(__file__).resolve().parent / "../../docs/internals/rdma-evidence.md"
RUNS = {
    "stop": "gets while the owner is stopped; owners that die",
    "retries": "owners that die, with an adapter that tries for ever",
    "unit": "all unit tests of path `ucx`",
}
SCENARIOS = {
    "rows": "64 blocks of 256 KiB, nothing is done to the machines",
    "lossy": "2 % of the packets are lost, both ways",
    "down-and-up": "the adapter's network card is down for 3 s in the middle",
    "killed-before": "an executor is killed before its blocks are read",
    "killed-during": "an executor is killed while both read each other",
    "killed-after": "an executor is killed behind a read, and all is read again",
}


def tests(folder, case, job):
    """A row for each class of unit tests."""
    rows = {}
    for report in sorted(folder.glob(f"*/{REPORT}")):
        for test in xml.parse(report).getroot().iter("testcase"):
            name = test.get("classname").removeprefix(PACKAGE)
            row = rows.setdefault(
                (report.parent.name, name),
                {
                    "case": case,
                    "job": job,
                    "run": report.parent.name,
                    "tests_of": name,
                    "passed": 0,
                    "failed": 0,
                    "skipped": 0,
                },
            )
            broken = test.find("failure") is not None or test.find("error") is not None
            outcome = (
                "failed" if broken else "skipped" if test.find("skipped") is not None else "passed"
            )
            row[outcome] += 1
    return list(rows.values())


def scenarios(folder, case, job):
    file = folder / "scenarios.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [{"case": case, "job": job} | json.loads(line) for line in lines]


def main(out, commit, folder):
    folder = pathlib.Path(folder)
    case = "libucx " + (folder / "libucx").read_text().strip()
    rows = []
    for line in (folder / "jobs.tsv").read_text().splitlines():
        name, status, seconds = line.split("\t")
        if name == WHOLE:
            rows.append({"case": WHOLE, "exit_status": int(status), "seconds": int(seconds)})
            continue
        host = folder / name
        rows.append(
            {"case": case, "job": name, "exit_status": int(status), "seconds": int(seconds)}
        )
        rows += tests(host, case, name) + scenarios(host, case, name)
    write(
        out,
        {
            "bench": "rdma",
            "commit": commit,
            "date": datetime.date.today().isoformat(),
            "host": {
                "adapter": "rdma_rxe (software)",
                "machines": "QEMU, emulated processors",
                "cpu_cores": 2,
            },
            "goals": goals(rows),
            "rows": rows,
        },
    )
    PAGE.write_text(replace_section(PAGE.read_text(), "rdma", page(rows) + missing(goals(rows))))


def missing(found):
    """What the page must not pass over: goals that nothing has shown yet."""
    left = [
        goal["goal"]
        for goal in found
        if goal["value"] is None
        or not goal.get("at_least", 0) <= goal["value"] <= goal.get("at_most", goal["value"])
    ]
    return "".join(["\n\n**Not shown yet:** ", "; ".join(left), "."]) if left else ""


def page(rows):
    runs = {}
    for row in rows:
        if "tests_of" in row:
            found = runs.setdefault((row["case"], row["run"]), [0, 0, 0])
            for i, outcome in enumerate(("passed", "failed", "skipped")):
                found[i] += row[outcome]
    tested = markdown(
        ["tests, in one machine", "with", "passed", "failed", "skipped"],
        [[RUNS[run], case, *map(str, counts)] for (case, run), counts in runs.items()],
    )
    applied = markdown(
        [
            "two executors of Spark, each on a machine of its own",
            "with",
            "rows",
            "MB by UCX",
            "MB staged",
            "failed tasks",
        ],
        [
            [
                SCENARIOS[row["scenario"]],
                row["case"],
                "right" if row["right"] else "**wrong**",
                megabytes(row, "ucx"),
                megabytes(row, "staged"),
                str(row.get("failed_tasks", "-")),
            ]
            for row in rows
            if "scenario" in row
        ],
    )
    return f"{tested}\n\n{applied}"


def megabytes(row, path):
    return f"{row[path + '_bytes'] / 1e6:.1f}" if path + "_bytes" in row else "-"


def goals(rows):
    def passed(run, name):
        return sum(
            row["passed"] for row in rows if row.get("run") == run and row["tests_of"] == name
        )

    found = [
        {
            "goal": "sizes of gets that end while the owner is stopped",
            "at_least": 4,
            "value": passed("stop", "OneSidedGetTest"),
        },
        {
            "goal": "ways for an owner to die after which gets end within the request timeout",
            "at_least": 3,
            "value": passed("stop", "OwnerDeathTest"),
        },
        {
            "goal": "the same where the adapter tries for ever",
            "at_least": 3,
            "value": passed("retries", "OwnerDeathTest"),
        },
    ]
    found.append(
        {
            "goal": "unit tests of path ucx over verbs that fail",
            "at_most": 0,
            "value": sum(row.get("failed", 0) for row in rows),
        }
    )
    applications = [row for row in rows if "scenario" in row]
    found.append(
        {
            "goal": "scenarios between two machines whose rows are all right",
            "at_least": 6,
            "value": sum(row["right"] for row in applications),
        }
    )
    found.append(
        {
            "goal": "bytes that were staged where nothing was done to the machines",
            "at_most": 0,
            "value": sum(row["staged_bytes"] for row in applications if row["scenario"] == "rows"),
        }
    )
    jobs = [row for row in rows if "job" in row and "exit_status" in row]
    # Of a part of the jobs it says nothing.
    whole = [row["seconds"] for row in rows if row["case"] == WHOLE and len(jobs) == JOBS]
    found.append(
        {
            "goal": "seconds of the whole profile's jobs, images made",
            "at_most": LIMIT_SECONDS,
            "value": whole[0] if whole else None,
        }
    )
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
