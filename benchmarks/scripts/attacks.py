#!/usr/bin/env python3
"""Writes what tests of attacks and of public bug reports showed: attacks.py OUT.json COMMIT HEAP REPORTS ...

HEAP is what ManyReadersTest writes with -Dzerohop.readers.out; REPORTS are folders of XML reports of
mvn verify. An attack counts as refused if all its tests are there and passed.
"""

import datetime
import json
import pathlib
import sys
import xml.etree.ElementTree

from kills import host
from measurements import write

# What is tried, and the tests that try it. A test is a class, or a class and the beginning of a name.
REFUSED = {
    "the doctor opens UCX's port": ["DoctorListenersTest", "ListenersSuite"],
    "a relay passes the executors' handshake on": ["RelayTest"],
    "a relay alters blocks and keeps their checksums": ["RelayedReadTest"],
    "a socket that nobody serves takes a live executor's place": [
        "PeerTest.anOwnerWithADeadSocketInItsPlaceIsStaged"
    ],
    "a properties file or a foreign jar runs code in the doctor": ["ForeignCodeTest"],
    "an event log ends the history server": ["HostileLogTest"],
    "idle connections keep executors out of the control port": [
        "ControlStrangersTest.idleConnectionsKeepNobodyOut",
        "OpenChannelsTest",
    ],
    "another user makes the socket folder first": ["SquattedFolderTest"],
    "blocks are in a core dump, or segments are executed": [
        "HostDeviceTest.segmentsAreNeitherDumpedNorExecuted"
    ],
    "the native library is given false counts": ["SocketsTest"],
    "a small get of UCX writes to GPU memory by the CPU": ["LibucxVersionTest"],
    "a table header's length takes memory": [
        "TableHeaderTest.aLengthThatIsALieTakesNoMemory",
        "HostStagingTest.aLengthThatIsALie",
    ],
    "who may not view the application reads the tab": ["TabAccessTest"],
    "a locale with digits of its own ends jobs": ["LocationTest.theTextIsTheSameInEveryLocale"],
    "a failure of an executor's start fails the job": ["NodeStartTest"],
    "readers keep their block lists until their task ends": ["ManyReadersTest"],
}

# What SECURITY.md says instead, since no code can close it.
STATED = [
    "GPU descriptors of one process are told apart by the process alone",
    "a relay in another PID namespace before Linux 6.9",
    "rows in the Java heap go to core dumps, and segments to swap",
    "variables of the environment choose the Java that the doctor runs on",
]


def results(folders):
    """Whether each test passed, by class and name."""
    found = {}
    for folder in folders:
        for file in pathlib.Path(folder).glob("*.xml"):
            for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
                passed = all(case.find(tag) is None for tag in ("failure", "error", "skipped"))
                name = f"{case.get('classname').split('.')[-1]}.{case.get('name')}"
                found[name] = found.get(name, True) and passed
    return found


def main(out, commit, heap, *folders):
    found = results(folders)
    rows = []
    for attack, tests in REFUSED.items():
        ran = [[found[name] for name in found if (name + ".").startswith(test)] for test in tests]
        refused = all(of and all(of) for of in ran)
        rows.append(
            {
                "case": "attack",
                "attack": attack,
                "outcome": "refused" if refused else "open",
                "tests": tests,
                "runs": sum(map(len, ran)),
            }
        )
    rows += [{"case": "attack", "attack": attack, "outcome": "stated"} for attack in STATED]
    readers = [json.loads(line) for line in open(heap)]
    rows += [{"case": "readers", **row} for row in readers]
    count = {
        outcome: sum(row.get("outcome") == outcome for row in rows)
        for outcome in ("refused", "stated", "open")
    }
    listens = [row for row in rows if "ListenersSuite" in row.get("tests", [])]
    goals = [
        {"goal": "attacks that are open", "at_most": 0, "value": count["open"]},
        {"goal": "attacks refused by a test", "at_least": len(REFUSED), "value": count["refused"]},
        {
            "goal": "what SECURITY.md states instead",
            "at_most": len(STATED),
            "value": count["stated"],
        },
        {
            "goal": "listeners at the defaults that are not Spark's",
            "at_most": 0,
            "value": 0 if listens[0]["outcome"] == "refused" else None,
        },
        {
            "goal": "heap of 2,000 readers over sort shuffle's, bytes",
            "at_most": 2 << 20,
            "value": max(row["over_sort_bytes"] for row in readers),
        },
    ]
    today = datetime.date.today().isoformat()
    write(
        out,
        {
            "bench": "attacks",
            "commit": commit,
            "date": today,
            "host": host(),
            "goals": goals,
            "rows": rows,
        },
    )
    for goal in goals:
        print(goal)


if __name__ == "__main__":
    main(*sys.argv[1:])
