"""TPC-DS' rows beside the CPU's, and its plans and their statistics beside those of other shuffles."""

import collections
import json
import pathlib
import statistics
import sys

from measurement import measurement
from measurements import write
from tpcds import OURS, order, undisturbed

SHAPE = ("joins", "shuffles", "broadcasts")


def shape(row):
    """Joins in any order: which of two uses of an exchange comes first is a matter of chance."""
    return sorted(row["plan"]["joins"]), row["plan"]["shuffles"], row["plan"]["broadcasts"]


def plan_differences(ours, theirs):
    """None if some run of ours has the plan of some run of theirs; stages that end in another order
    can change a plan, so each query has several."""
    ours, theirs = ([row for row in rows if "plan" in row] for rows in (ours, theirs))
    if not ours or not theirs or same_plan(ours, theirs):
        return None
    here, there = (dict(zip(SHAPE, shape(rows[-1]))) for rows in (ours, theirs))
    differing = {
        key: {"ours": here[key], "theirs": there[key]} for key in SHAPE if here[key] != there[key]
    }
    if "joins" in differing:
        mine, other = collections.Counter(here["joins"]), collections.Counter(there["joins"])
        differing["joins"] = {
            "ours": sorted((mine - other).elements()),
            "theirs": sorted((other - mine).elements()),
        }
    return differing


def same_plan(ours, theirs):
    """A pair of runs with the same plan, whose statistics can be compared."""
    for a in ours:
        for b in theirs:
            if "plan" in a and "plan" in b and shape(a) == shape(b):
                return a["plan"], b["plan"]
    return None


def row_of(case, query, runs, equal):
    row = {"case": case, "query": query, "equal": equal.get((case, query))}
    good = [run for run in runs if "error" not in run]
    if len(good) < len(runs):
        row["error"] = next(run["error"] for run in runs if "error" in run)[:200]
    if good:
        run = good[-1]
        row |= {
            key: run[key]
            for key in (
                "rows",
                "gpu_exchanges",
                "cpu_exchanges",
                "local_bytes",
                "peer_bytes",
                "staged_bytes",
                "shuffle_bytes",
            )
        }
        row |= {
            key: run["plan"][key]
            for key in ("data_bytes", "shuffles", "broadcasts", "skewed_reads", "local_reads")
        }
        row["read_tasks"] = sum(run["plan"]["read_partitions"])
    return {key: value for key, value in row.items() if value != 0 or isinstance(value, bool)}


def compare(runs, other):
    """Plans and data sizes of ours beside another contender's."""
    differing, ratios, tasks = {}, {}, []
    for query in sorted({query for case, query in runs if case == OURS}, key=order):
        # Sizes, and so plans, do not depend on how much memory ours has: all its runs count.
        ours = [
            run
            for (case, named), group in runs.items()
            if named == query and case.startswith(OURS)
            for run in group
        ]
        theirs = runs.get((other, query), [])
        differences = plan_differences(ours, theirs)
        if differences:
            differing[query] = differences
        pair = same_plan(ours, theirs)
        if pair and pair[1]["data_bytes"] > 0:
            ratios[query] = pair[0]["data_bytes"] / pair[1]["data_bytes"]
            if pair[1]["read_partitions"]:
                tasks.append(
                    sum(pair[0]["read_partitions"]) / max(1, sum(pair[1]["read_partitions"]))
                )
    far = max(ratios, key=lambda query: abs(ratios[query] - 1), default=None)
    return {
        "plans_compared": len([query for case, query in runs if case == other]),
        "plans_that_differ": differing,
        "data_size_ratio": {
            "queries": len(ratios),
            "median": round(statistics.median(ratios.values()), 4) if ratios else None,
            "farthest": round(ratios[far], 4) if far else None,
            "farthest_query": far,
        },
        "read_tasks_ratio": round(statistics.median(tasks), 4) if tasks else None,
    }


def goals(rows, summary, scale, gpus):
    about = f"TPC-DS scale {scale:g}, {gpus} GPUs, Spark's defaults"

    def good(case):
        found = [row for row in rows if row["case"] == case]
        return (
            sum(
                row["equal"] is True and "error" not in row and row.get("staged_bytes", 0) == 0
                for row in found
            )
            if found
            else None
        )

    ucx = summary.get("ucx", {})
    farthest = ucx.get("data_size_ratio", {}).get("farthest")
    return [
        {
            "goal": f"{about}, queries equal to the CPU's, none staged",
            "at_least": 103,
            "value": good(OURS),
        },
        {
            "goal": f"{about}, a tenth of the GPU pool and little for RAPIDS, queries equal, none staged",
            "at_least": 103,
            "value": good("zerohop+tight"),
        },
        {
            "goal": "data size of exchanges off that of RAPIDS' UCX mode, at most",
            "at_most": 0.05,
            "value": None if farthest is None else round(abs(farthest - 1), 4),
        },
        {
            "goal": "queries with another plan than RAPIDS' UCX mode",
            "at_most": 0,
            "value": len(ucx["plans_that_differ"]) if ucx else None,
        },
    ]


def tpcds_check(out, commit_file, runs_file, equal_file):
    raw = undisturbed(runs_file)
    if not raw:
        print("nothing was run undisturbed")
        return
    known = pathlib.Path(equal_file)
    equal = (
        {(row["case"], row["query"]): row.get("equal") for row in map(json.loads, known.open())}
        if known.exists()
        else {}
    )
    runs = collections.defaultdict(list)
    for row in raw:
        if row["partitions"] == raw[0]["partitions"]:
            runs[row["case"], row["query"]].append(row)
    rows = [
        row_of(case, query, group, equal)
        for (case, query), group in sorted(
            runs.items(), key=lambda item: (item[0][0], order(item[0][1]))
        )
    ]
    others = sorted({row["case"] for row in rows if not row["case"].startswith(OURS)})
    summary = (
        {other: compare(runs, other) for other in others}
        if any(row["case"] == OURS for row in rows)
        else {}
    )
    value = measurement(pathlib.Path(out).stem, commit_file, rows)
    value["setting"] = {
        "scale": raw[0]["scale"],
        "runs_of_a_query": 1 + max(row["iteration"] for row in raw),
    }
    value["summary"] = summary
    value["goals"] = goals(rows, summary, raw[0]["scale"], value["host"]["gpus"])
    write(out, value)
    bad = report(rows, summary)
    if bad:
        sys.exit("\n".join(bad))


def report(rows, summary):
    """What is wrong: other rows, failures, bytes that were staged, shuffles without statistics."""
    bad = []
    for case in dict.fromkeys(row["case"] for row in rows):
        found = [row for row in rows if row["case"] == case]
        total = {
            key: sum(row.get(key, 0) for row in found)
            for key in ("local_bytes", "peer_bytes", "staged_bytes", "data_bytes", "shuffle_bytes")
        }
        print(
            f"{case}: {sum(row['equal'] is True for row in found)} of {len(found)} equal, {total}"
        )
        for row in found:
            if not row["equal"] or "error" in row:
                bad.append(
                    f"{case} {row['query']}: {row.get('error', 'not compared' if row['equal'] is None else 'other rows')}"
                )
            elif case.startswith(OURS) and row.get("staged_bytes", 0) > 0:
                bad.append(f"{case} {row['query']}: {row['staged_bytes']} bytes were staged")
            elif (
                case.startswith(OURS)
                and row.get("shuffle_bytes")
                and row.get("gpu_exchanges")
                and not row.get("data_bytes")
            ):
                bad.append(f"{case} {row['query']}: shuffles without a data size")
    for other, value in summary.items():
        print(
            f"beside {other}: data size {value['data_size_ratio']}, read tasks {value['read_tasks_ratio']}, "
            f"{len(value['plans_that_differ'])} plans differ of {value['plans_compared']}"
        )
        for query, differences in value["plans_that_differ"].items():
            print(f"  {query}: {json.dumps(differences)[:300]}")
    return bad
