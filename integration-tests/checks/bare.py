#!/usr/bin/env python3
"""Writes what bare.sh ran as docs/measurements/bare.json: bare.py RESULTS TREE CASE SYSTEM PACKAGE...

RESULTS has the commit, COMMAND.ran (the command line, its exit status, its seconds) and COMMAND.log, TREE the
reports of the tests. The rows of other cases (root, user) stay as they are in the file. Ends with 1
if a command has failed."""

import datetime
import glob
import json
import os
import platform
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "scripts"))
from measurements import write

OUT = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "bare.json"
REPORTS = {
    "native": "native/target/surefire-reports",
    "shuffle": "shuffle/target/surefire-reports",
    "shuffle, no libucx": "shuffle/target/no-libucx-reports",
    "plugin": "plugin/target/surefire-reports",
    "integration-tests": "integration-tests/target/scalatest-reports",
    "integration-tests, full": "integration-tests/target/full-reports",
}


def demo(log):
    """The demo's last line, and the local bytes, which only its table has."""
    line = re.search(r"^demo: (.*)$", log, re.M)
    words = dict(word.split("=") for word in line.group(1).split() if "=" in word) if line else {}
    row = {
        key: int(words[key])
        for key in ("queries", "mismatches", "peer_bytes", "staged_bytes")
        if key in words
    }
    lines = [line.split() for line in log.splitlines() if re.match(r"\[\d+/\d+\] ", line)]
    return row | {"local_mb": round(sum(float(line[6]) for line in lines), 2)} if row else row


def tests(folder):
    """The outcomes of JUnit's and ScalaTest's reports, of which a command makes some."""
    counts = {"tests": 0, "succeeded": 0, "failed": 0, "skipped": 0}
    for file in glob.glob(f"{folder}/*.xml"):
        for case in xml.parse(file).iter("testcase"):
            bad = case.find("failure") is not None or case.find("error") is not None
            outcome = (
                "failed" if bad else "skipped" if case.find("skipped") is not None else "succeeded"
            )
            counts["tests"] += 1
            counts[outcome] += 1
    return counts


def verify(log, tree):
    found = {name: tests(os.path.join(tree, folder)) for name, folder in REPORTS.items()}
    modules = {name: counts for name, counts in found.items() if counts["tests"]}
    sums = {
        key: sum(module[key] for module in modules.values())
        for key in ("tests", "succeeded", "failed", "skipped")
    }
    missing = {}
    for reasons in re.findall(r"^skips: \d+ of \d+ tests were skipped: (.*)$", log, re.M):
        for count, reason in re.findall(r"(\d+) for want of ([^;]+)", reasons):
            missing[reason] = missing.get(reason, 0) + int(count)
    return sums | {"skipped_for_want_of": missing, "modules": modules}


def goal(rows, case, command):
    """What has not run has no value."""
    found = [
        row["exit_status"] for row in rows if row["case"] == case and row["command"] == command
    ]
    return {
        "goal": f"exit status of {command}, case {case}",
        "at_most": 0,
        "value": found[0] if found else None,
    }


def main(results, tree, case, system, *packages):
    date = datetime.date.today().isoformat()
    commit = Path(results, "commit").read_text().strip()
    rows = []
    for ran in sorted(glob.glob(f"{results}/*.ran")):
        command, status, seconds = Path(ran).read_text().splitlines()
        log = Path(ran[: -len("ran")] + "log").read_text(errors="replace")
        found = demo(log) if ran.endswith("demo.ran") else verify(log, tree)
        head = {
            "case": case,
            "command": command,
            "exit_status": int(status),
            "seconds": int(seconds),
        }
        rows.append(head | {"commit": commit, "date": date} | found)
    before = json.loads(OUT.read_text()) if OUT.exists() else {"setting": {}, "rows": []}
    rows += [row for row in before["rows"] if row["case"] != case]
    content = {
        "bench": "bare",
        "commit": commit,
        "date": date,
        "host": {"cpu_cores": os.cpu_count(), "kernel": platform.release()},
        "setting": before["setting"]
        | {case: {"system": system, "packages": packages, "user": "unprivileged"}},
        "goals": [
            goal(rows, case, command)
            for case in ("root", "user")
            for command in ("./demo", "mvn -B verify")
        ],
        "rows": rows,
    }
    write(OUT, content)
    print(f"wrote {OUT}")
    return any(row["exit_status"] for row in rows if row["case"] == case)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
