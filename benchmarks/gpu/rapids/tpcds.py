"""TPC-DS that was timed, at Spark's defaults."""

import collections
import json
import os
import pathlib
import statistics
import sys

from measurement import equal_queries, figures, measurement
from measurements import write

OURS = "zerohop"
HELD = ("resident_bytes", "heap_bytes", "pool_reserved_bytes")


def order(query):
    """q2 before q14a before q14b before q100."""
    number = query[1:].rstrip("ab")
    return int(number), query


def by_files(case):
    return case.split("+")[0] in ("sort", "multithreaded")


def compact(groups):
    """One row a contender and query; {(partitions, query): {case: row}} beside it."""
    rows, found = [], collections.defaultdict(dict)
    for (partitions, query, case), group in sorted(
        groups.items(), key=lambda item: (int(item[0][0]), order(item[0][1]), item[0][2])
    ):
        good = [row for row in group if "error" not in row]
        row = {"case": case, "query": query, "partitions": int(partitions)}
        if good:
            row |= figures(good)
            row["shuffle_bytes"] = int(statistics.median(row["shuffle_bytes"] for row in good))
            row["staged_bytes"] = max(row["staged_bytes"] for row in good)
        if len(good) < len(group):
            row["error"] = next(row["error"] for row in group if "error" in row)[:200]
        rows.append(row)
        found[partitions, query][case] = row
    return rows, found


def ratios(found, partitions, other, ours=OURS):
    """How many times as fast ours is, for each query that both have run."""
    pairs = {}
    for (parts, query), cases in found.items():
        if parts == partitions and all("seconds" in cases.get(case, {}) for case in (ours, other)):
            pairs[query] = cases[other]["seconds"] / cases[ours]["seconds"]
    return pairs


def beyond_spread(found, partitions, other, pairs, least, ours=OURS):
    """Queries whose ratio stays below the least one with the spreads of both in its favour."""
    slow = []
    for query, ratio in pairs.items():
        cases = found[partitions, query]
        if ratio * (1 + cases[ours]["spread"] + cases[other]["spread"]) < least:
            slow.append(query)
    return slow


def yardstick(found, partitions):
    """The one file-based contender with the least geometric mean, over what all of them have run."""
    cases = {
        case
        for (parts, _), all_cases in found.items()
        if parts == partitions
        for case in all_cases
        if by_files(case)
    }
    common = [
        query
        for (parts, query), all_cases in found.items()
        if parts == partitions and all("seconds" in all_cases.get(case, {}) for case in cases)
    ]
    if not cases or not common:
        return None, {}, []
    means = {
        case: statistics.geometric_mean(
            found[partitions, query][case]["seconds"] for query in common
        )
        for case in cases
    }
    return min(means, key=means.get), means, sorted(common, key=order)


def summarise(found):
    summary = {}
    for partitions in sorted({parts for parts, _ in found}, key=int):
        best, means, common = yardstick(found, partitions)
        cases = {
            case
            for (parts, _), all_cases in found.items()
            if parts == partitions
            for case in all_cases
        }
        faster = {case: times_as_fast(found, partitions, case) for case in sorted(cases - {OURS})}
        # What a variation gives to the contender that it is one of.
        gained = {
            case: times_as_fast(found, partitions, case.rpartition("+")[0], case)
            for case in sorted(cases)
            if case.rpartition("+")[0] in cases
        }
        summary[partitions] = {
            "best_by_files": best,
            "chosen_on": common,
            "geometric_mean_seconds": {
                case: round(mean, 4)
                for case, mean in sorted(means.items(), key=lambda item: item[1])
            },
            "times_as_fast": {case: about for case, about in faster.items() if about},
            "variations": {case: about for case, about in gained.items() if about},
        }
    return summary


def times_as_fast(found, partitions, other, ours=OURS):
    """How ours fares beside another contender; nothing if no query was run by both."""
    pairs = ratios(found, partitions, other, ours)
    if not pairs:
        return {}
    worst = min(pairs, key=pairs.get)
    return {
        "queries": len(pairs),
        "geometric_mean": round(statistics.geometric_mean(pairs.values()), 4),
        "least": round(pairs[worst], 4),
        "least_query": worst,
        "below_0.9_beyond_spread": sorted(
            beyond_spread(found, partitions, other, pairs, 0.9, ours), key=order
        ),
    }


def goals(summary, found, scale, gpus):
    about = f"TPC-DS scale {scale:g}, {gpus} GPU{'s' if gpus > 1 else ''}"
    if len(summary) > 1:
        return [
            goal
            for partitions in list(summary)[1:]
            for goal in goals_of_many(
                summary, found, f"{about}, {int(partitions):,} partitions", partitions
            )
        ]
    about += ", with more settings" if os.environ.get("MORE") else ", Spark's defaults"
    best = over_files(next(iter(summary.values())))
    slow = best.get("below_0.9_beyond_spread")
    return [
        {
            "goal": f"{about}, geometric mean over best by files",
            "at_least": 1.0,
            "value": best.get("geometric_mean"),
        },
        {
            "goal": f"{about}, queries below 0.9 of best by files beyond their spread",
            "at_most": 0,
            "value": None if slow is None else len(slow),
        },
        {"goal": f"{about}, queries timed", "at_least": 103, "value": best.get("queries")},
    ]


def goals_of_large(raw, summary, scale, gpus):
    """At a scale that does not fit a GPU: speed, rows beside the files' and that none fails."""
    about = f"TPC-DS scale {scale:g}, {gpus} GPUs"
    return [
        {
            "goal": f"{about}, geometric mean over best by files",
            "at_least": 1.2,
            "value": over_files(next(iter(summary.values()))).get("geometric_mean"),
        },
        {
            "goal": f"{about}, queries whose rows equal those of the files",
            "at_least": 20,
            "value": equal_queries(raw),
        },
        {
            "goal": f"{about}, runs of ours that failed",
            "at_most": 0,
            "value": sum("error" in row and row["case"] == OURS for row in raw),
        },
    ]


def over_files(about):
    return about["times_as_fast"].get(about["best_by_files"], {})


def goals_of_many(summary, found, about, partitions):
    """What more partitions than the fewest that were timed cost us, and how files fare with them."""
    few = next(iter(summary))
    pairs = [
        cases[OURS]["seconds"] / found[few, query][OURS]["seconds"]
        for (parts, query), cases in found.items()
        if parts == partitions
        and all(
            "seconds" in found.get((number, query), {}).get(OURS, {})
            for number in (few, partitions)
        )
    ]
    return [
        {
            "goal": f"{about}, geometric mean of our time over that with {few}",
            "at_most": 1.15,
            "value": round(statistics.geometric_mean(pairs), 4) if pairs else None,
        },
        {
            "goal": f"{about}, geometric mean over best by files",
            "at_least": 1.4,
            "value": over_files(summary[partitions]).get("geometric_mean"),
        },
    ]


def show(found, summary):
    for partitions, about in summary.items():
        best = about["best_by_files"]
        print(
            f"{partitions} partitions, best by files {best}, of {about['geometric_mean_seconds']}"
        )
        for (parts, query), cases in found.items():
            if parts == partitions:
                cells = "  ".join(
                    f"{case} {row.get('seconds', row.get('error', '-'))}"
                    for case, row in sorted(cases.items())
                )
                ours, theirs = (cases.get(case, {}).get("seconds") for case in (OURS, best))
                print(
                    f"{query:<6}"
                    + (f"{theirs / ours:6.2f}  " if ours and theirs else " " * 8)
                    + cells
                )
        for case, value in about["times_as_fast"].items():
            print(f"times as fast as {case}: {value}")
        for case, value in about["variations"].items():
            print(f"{case}, times as fast as without: {value}")


def undisturbed(file):
    """Runs under which nobody was killed; kills.py has the others."""
    if not pathlib.Path(file).exists():
        sys.exit("no query was run")
    return [row for row in map(json.loads, open(file)) if not row["case"].endswith("+killed")]


def tpcds(out, commit_file, file):
    raw = undisturbed(file)
    if not raw:
        print("nothing was timed undisturbed")
        return
    groups = collections.defaultdict(list)
    last = max(row["iteration"] for row in raw)
    for row in raw:
        if row["iteration"] > 0:
            groups[row["partitions"], row["query"], row["case"]].append(row)
    if not groups:
        print("nothing was timed: round 0 warms up")
        return
    rows, found = compact(groups)
    summary = summarise(found)
    value = measurement(pathlib.Path(out).stem, commit_file, rows)
    scale, gpus = raw[0]["scale"], value["host"]["gpus"]
    value["setting"] = {"scale": scale, "iterations": last}
    if os.environ.get("MORE"):
        value["setting"]["more"] = os.environ["MORE"]
    value["summary"] = summary
    value["goals"] = (
        goals_of_large(raw, summary, scale, gpus)
        if scale >= 100
        else goals(summary, found, scale, gpus)
    )
    write(out, value)
    show(found, summary)
    for goal in value["goals"]:
        print(goal)
    failed = [f"{row['case']} {row['query']}: {row['error']}" for row in rows if "error" in row]
    if failed:
        sys.exit("\n".join(failed))


def session(out, commit_file, file):
    """Whether the executors' memory is flat over an application's rounds, the first of which warms up."""
    rows = [json.loads(line) for line in open(file)]
    rounds = collections.defaultdict(list)
    for row in rows:
        if row["iteration"] > 0:
            rounds[row["case"]].append(row)
    if len(rounds[OURS]) < 3:
        print("memory of a session is compared where three rounds have ended")
        return
    ends = {case: (of[0], of[-1]) for case, of in rounds.items() if len(of) >= 3}
    grown = [
        {"case": case, "grown": name, "bytes": last_bytes - first_bytes}
        for case, (first, last) in ends.items()
        for name, first_bytes, last_bytes in most_grown(first, last)
    ]
    short = [{key: of for key, of in row.items() if key != "classes"} for row in rows]
    value = measurement(pathlib.Path(out).stem, commit_file, short + grown)
    value["setting"] = {
        "scale": rows[0]["scale"],
        "queries": len(os.environ.get("QUERIES", "").split()) or 103,
    }
    if os.environ.get("MORE"):
        value["setting"]["more"] = os.environ["MORE"]
    about = f"TPC-DS scale {rows[0]['scale']:g}, {value['host']['gpus']} GPUs, round {rounds[OURS][-1]['iteration']} over round {rounds[OURS][0]['iteration']}"
    value["growth"] = {
        case: {of: round(last[of] / first[of], 3) for of in HELD if first.get(of)}
        for case, (first, last) in ends.items()
    }
    value["goals"] = [
        {
            "goal": f"{about}, {of.removesuffix('_bytes').replace('_', ' ')} bytes of the executors",
            "at_most": 1.05,
            "value": growth,
        }
        for of, growth in value["growth"][OURS].items()
    ]
    write(out, value)
    print(value["growth"])
    for row in grown:
        print(row)


def most_grown(first, last, many=12):
    """The classes whose objects take more bytes of the executors' heaps than they did, the largest first."""
    was, now = first.get("classes", {}), last.get("classes", {})
    each = [(name, was.get(name, 0), size) for name, size in now.items()]
    return sorted(each, key=lambda one: one[1] - one[2])[:many]
