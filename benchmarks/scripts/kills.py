#!/usr/bin/env python3
"""Adds what soaks and TPC-DS under kills have shown to a measurement: kills.py OUT.json COMMIT FOUND ...

OUT.json is read first, so that runs add up; what it has already is not added twice. COMMIT is that of
the runs, or a file that says it. FOUND is
  a folder        in which soak.json files are looked for (GPU's in folders gpu-*), and tpcds.jsonl
                  with its tpcds_equal.jsonl and killed.jsonl, as rapids.sh leaves them
  soak.json       of a soak with Maven
  host_kills.json of run.sh tpcds --kill-every
  kills.json      another measurement of this kind"""

import collections
import datetime
import json
import os
import pathlib
import statistics
import sys

from measurements import write

KILL_EVERY = 30
KEPT_KILL_EVERY = 20
# What the names of faults end with where a keeper holds what executors publish.
KEPT = ", with a keeper"
# What the names of faults end with where blocks go over Spark's connections.
SENT = ", blocks by sent"
TROUBLE = ("wrong", "hangs", "leftovers", "errors")
SUMS = ("runs", "kills", *TROUBLE, "failed_tasks")
HOST_SCALE, GPU_SCALE = 1, 10
QUERIES = 103


class Kills:
    """The measurement as it grows."""

    def __init__(self, out):
        self.out = pathlib.Path(out)
        self.sessions, self.faults, self.tpcds = [], {}, {}
        if self.out.exists():
            self.merge(json.loads(self.out.read_text()))

    def merge(self, other):
        """Another measurement's rows, unless a session of theirs is known."""
        if set(other["sessions"]) & set(self.sessions):
            print(
                "not merged: sessions of it are here already; give the folders that it was made of"
            )
            return
        self.sessions += other["sessions"]
        for row in other["rows"]:
            if "fault" in row:
                self.add_fault(
                    row["where"],
                    row,
                    collections.Counter({int(s): n for s, n in row["seconds_seen"].items()}),
                    row["commits"],
                )
            else:
                entry = self.tpcds_of(row["where"], row["case"], row["scale"], row["kill_every"])
                entry["kills"] += row["kills"]
                entry["again"] += row.get("map_tasks_again", 0)
                entry["queries"] |= row["queries"]
                note(entry["commits"], row["commits"])

    def add_soak(self, rows, where, commit):
        fresh = {row["session"] for row in rows} - set(self.sessions)
        for row in rows:
            if row["session"] in fresh:
                # What was cut off in its middle went on for longer than it may.
                row = row | {"hangs": row["hangs"] + row["unfinished"]}
                self.add_fault(
                    where,
                    row,
                    collections.Counter(round(each) for each in row["seconds"]),
                    [commit],
                )
        self.sessions += sorted(fresh)

    def add_fault(self, where, row, seconds, commits):
        entry = self.faults.setdefault(
            (where, row["fault"]),
            {"sums": collections.Counter(), "seconds": collections.Counter(), "commits": []},
        )
        entry["sums"].update({name: row[name] for name in SUMS})
        entry["seconds"].update(seconds)
        note(entry["commits"], commits)

    def tpcds_of(self, where, case, scale, every):
        return self.tpcds.setdefault(
            (where, case, scale, every), {"kills": 0, "again": 0, "queries": {}, "commits": []}
        )

    def add_queries(self, where, case, scale, every, kills, queries, commit, again=0):
        """kills: {session: how many}; again: map tasks of which another one had succeeded before; queries: {name: [seconds undisturbed or None, seconds under kills, equal]}"""
        fresh = sorted(set(kills) - set(self.sessions))
        self.sessions += fresh
        entry = self.tpcds_of(where, case, scale, every)
        entry["kills"] += sum(kills[session] for session in fresh)
        entry["again"] += again if fresh else 0
        entry["queries"] |= queries
        note(entry["commits"], [commit])

    def rows(self):
        return [
            fault_row(*key, entry) for key, entry in sorted(self.faults.items(), reverse=True)
        ] + [tpcds_row(*key, entry) for key, entry in sorted(self.tpcds.items(), reverse=True)]

    def write(self, commit):
        rows = self.rows()
        head = {
            "bench": "kills",
            "commit": commit,
            "date": datetime.date.today().isoformat(),
            "host": host(),
            "goals": goals(rows),
            "sessions": self.sessions,
        }
        write(self.out, head | {"rows": rows})
        for row in rows:
            print(
                ", ".join(
                    f"{name} {value}"
                    for name, value in row.items()
                    if name not in ("seconds_seen", "queries", "commits")
                )
            )
        for goal in head["goals"]:
            print(goal)


def note(known, more):
    known += [each for each in more if each not in known]


def fault_row(where, fault, entry):
    seen = sorted(entry["seconds"].elements())
    return {
        "case": "zerohop",
        "where": where,
        "fault": fault,
        **{name: entry["sums"][name] for name in SUMS},
        "seconds_median": statistics.median(seen) if seen else None,
        "seconds_max": max(seen, default=None),
        "commits": entry["commits"],
        "seconds_seen": {
            str(second): entry["seconds"][second] for second in sorted(entry["seconds"])
        },
    }


def tpcds_row(where, case, scale, every, entry):
    both = [(calm, killed) for calm, killed, _ in entry["queries"].values() if calm and killed]
    calm, killed = (round(sum(times), 2) for times in zip(*both)) if both else (None, None)
    return {
        "case": case,
        "where": where,
        "workload": "tpcds",
        "scale": scale,
        "kill_every": every,
        "kills": entry["kills"],
        "map_tasks_again": entry["again"],
        "asked": len(entry["queries"]),
        "equal": sum(equal is True for *_, equal in entry["queries"].values()),
        "seconds": calm,
        "seconds_killed": killed,
        "times_as_long": round(killed / calm, 3) if calm else None,
        "commits": entry["commits"],
        "queries": entry["queries"],
    }


def goals(rows):
    faults = [row for row in rows if "fault" in row]
    kills = {
        where: sum(row["kills"] for row in faults if row["where"] == where)
        for where in ("host", "gpu")
    }
    found = [
        {"goal": "executors killed on host memory", "at_least": 1000, "value": kills["host"]},
        {"goal": "executors killed on GPUs", "at_least": 200, "value": kills["gpu"]},
    ]
    for where, about, least in (("host", "host memory", 300), ("gpu", "GPUs", 60)):
        sent = [row["kills"] for row in faults if row["where"] == where and SENT in row["fault"]]
        found.append(
            {
                "goal": f"executors killed on {about}{SENT}",
                "at_least": least,
                "value": sum(sent),
            }
        )
    # Where the keeper is killed, too, something is computed again.
    for where, about, least in (("host", "host memory", 300), ("gpu", "GPUs", 60)):
        kept = [
            row["kills"]
            for row in faults
            if row["where"] == where
            and KEPT in row["fault"]
            and "keeper" not in row["fault"].removesuffix(KEPT)
        ]
        found.append(
            {
                "goal": f"executors killed on {about}{KEPT}; nothing that a living keeper has is computed again",
                "at_least": least,
                "value": sum(kept),
            }
        )
    named = {
        "wrong": "runs with wrong rows",
        "hangs": "hangs",
        "leftovers": "runs that left something behind",
        "errors": "runs that failed in another way",
    }
    found += [
        {
            "goal": named[kind],
            "at_most": 0,
            "value": sum(row[kind] for row in faults) if faults else None,
        }
        for kind in TROUBLE
    ]
    for where, scale, about in (("host", HOST_SCALE, "host memory"), ("gpu", GPU_SCALE, "GPUs")):
        equal = [
            row["equal"]
            for row in rows
            if "fault" not in row
            and (row["where"], row["case"], row["scale"], row["kill_every"])
            == (where, "zerohop", scale, KILL_EVERY)
        ]
        found.append(
            {
                "goal": f"TPC-DS scale {scale} on {about} with an executor killed every 30 s, queries equal to the undisturbed answer",
                "at_least": QUERIES,
                "value": max(equal, default=None),
            }
        )
    return found + [
        *kept_goals(rows, "host", HOST_SCALE, "host memory", "sort"),
        *kept_goals(rows, "gpu", GPU_SCALE, "GPUs", "multithreaded"),
    ]


def kept_goals(rows, where, scale, on, other):
    """TPC-DS with a keeper, beside a shuffle by files in the same run."""
    by_case = {
        row["case"]: row
        for row in rows
        if "fault" not in row
        and (row["where"], row["scale"], row["kill_every"]) == (where, scale, KEPT_KILL_EVERY)
    }
    kept, files = by_case.get("zerohop+keeper"), by_case.get(other)
    if not kept or not files:
        return []
    about = f"TPC-DS scale {scale} on {on}{KEPT} and an executor killed every {KEPT_KILL_EVERY} s"
    common = [
        query
        for query in kept["queries"]
        if query in files["queries"]
        and all(all(row["queries"][query][:2]) for row in (kept, files))
    ]
    ours, theirs = (
        sum(row["queries"][query][1] - row["queries"][query][0] for query in common)
        for row in (kept, files)
    )
    return [
        {
            "goal": f"{about}, queries that are not equal to the undisturbed answer",
            "at_most": 0,
            "value": kept["asked"] - kept["equal"],
        },
        {"goal": f"{about}, map tasks run again", "at_most": 0, "value": kept["map_tasks_again"]},
        {
            "goal": f"{about}, extra seconds over those of {other}",
            "at_most": 0.5,
            "value": round(ours / theirs, 3) if theirs > 0 else None,
        },
    ]


def host():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"cpu": names[0] if names else "", "cpu_cores": os.cpu_count()}


def lines(file):
    return [json.loads(line) for line in open(file)] if file.exists() else []


def gpu_tpcds(folder):
    """What rapids.sh tpcds has left of contenders named ...+killed, and of the same undisturbed.

    Where the CPU's rows are not known, those of the undisturbed runs are what must come."""
    runs, deaths = lines(folder / "tpcds.jsonl"), lines(folder / "killed.jsonl")
    equal = {
        (row["case"], row["query"]): row.get("equal") for row in lines(folder / "tpcds_equal.jsonl")
    } or as_undisturbed(runs)
    # Where no round was timed, the one that warms up says it, for both alike.
    first = min(1, max((row["iteration"] for row in runs), default=0))
    times = collections.defaultdict(list)
    for row in runs:
        if row["iteration"] >= first and "error" not in row:
            times[row["case"], row["query"]].append(row["seconds"])
    # A kill hits some of the rounds: a median would leave it out.
    mean = {key: round(statistics.fmean(seconds), 3) for key, seconds in times.items()}
    failed = {(row["case"], row["query"]) for row in runs if "error" in row}
    for case in sorted({row["case"] for row in runs if row["case"].endswith("+killed")}):
        queries = {}
        for query in dict.fromkeys(row["query"] for row in runs if row["case"] == case):
            right = equal.get((case, query)) if (case, query) not in failed else False
            queries[query] = [
                mean.get((case.removesuffix("+killed"), query)),
                mean.get((case, query)),
                right,
            ]
        mine = [row for row in deaths if row["case"] == case]
        yield {
            "where": "gpu",
            "case": case.removesuffix("+killed"),
            "scale": runs[0]["scale"],
            "every": mine[0]["every"] if mine else None,
            "kills": collections.Counter(f"{case}-{row['session']}" for row in mine),
            "again": sum(row.get("map_tasks_again", 0) for row in runs if row["case"] == case),
            "queries": queries,
        }


def as_undisturbed(runs):
    """{(case, query): whether every run of a killed contender gave the rows of all undisturbed ones}"""
    found = collections.defaultdict(set)
    for row in runs:
        if "error" not in row:
            found[row["case"], row["query"]].add(row["checksum"])
    calm = collections.defaultdict(set)
    for (case, query), checksums in found.items():
        if not case.endswith("+killed"):
            calm[query] |= checksums
    return {
        (case, query): len(calm[query] | checksums) == 1
        for (case, query), checksums in found.items()
        if case.endswith("+killed") and calm[query]
    }


def rounded(seconds):
    return None if seconds is None else round(seconds, 3)


def host_tpcds(value):
    for case in dict.fromkeys(row["case"] for row in value["rows"]):
        rows = [row for row in value["rows"] if row["case"] == case]
        queries = {
            row["query"].split(":")[-1]: [
                rounded(row.get("seconds")),
                rounded(row.get("killed_seconds")),
                row.get("killed_equal", False),
            ]
            for row in rows
        }
        yield {
            "where": "host",
            "case": case,
            "scale": value["setting"]["scale"],
            "every": value["setting"]["kill_every"],
            "kills": {
                f"{case}-{value['setting']['session']}": sum(row.get("kills", 0) for row in rows)
            },
            "again": sum(row.get("map_tasks_again", 0) for row in rows),
            "queries": queries,
        }


def add(kills, found, commit):
    found = pathlib.Path(found)
    if found.is_dir():
        for file in sorted(found.rglob("soak.json")):
            on_gpu = any(part.startswith("gpu-") for part in file.relative_to(found.parent).parts)
            kills.add_soak(json.loads(file.read_text()), "gpu" if on_gpu else "host", commit)
        for file in sorted(found.rglob("tpcds.jsonl")):
            for about in gpu_tpcds(file.parent):
                kills.add_queries(**about, commit=commit)
        return
    value = json.loads(found.read_text())
    if isinstance(value, list):
        kills.add_soak(value, "host", commit)
    elif value["bench"] == "kills":
        kills.merge(value)
    else:
        for about in host_tpcds(value):
            kills.add_queries(**about, commit=value["commit"])


def main(out, commit, *found):
    if pathlib.Path(commit).is_file():
        commit = pathlib.Path(commit).read_text().strip()
    kills = Kills(out)
    for each in found:
        add(kills, each, commit)
    kills.write(commit)


if __name__ == "__main__":
    main(*sys.argv[1:])
