"""TPC-H that was timed."""

import collections
import json
import pathlib
import statistics
import sys

from measurement import figures, measurement
from measurements import write


def tpch_summary(rows):
    """Per query the figures of each contender, and geometric means of our times over the others'.

    A ratio is taken over the queries that both have run. That to "best" is over the contender with
    the least median of each query.
    """
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if row["iteration"] > 0 and "error" not in row:
            groups[row["query"]][row["case"]].append(row)
    order = sorted(groups, key=lambda query: int(query[1:]))
    queries = {
        query: {case: figures(group) for case, group in groups[query].items()} for query in order
    }
    ratios = {}
    for measure in ("seconds", "stage_ms"):
        found = collections.defaultdict(list)
        for cases in queries.values():
            ours = cases.get("zerohop", {}).get(measure)
            others = {
                case: value[measure]
                for case, value in cases.items()
                if case != "zerohop" and value[measure]
            }
            if ours and others:
                for case, value in [*others.items(), ("best", min(others.values()))]:
                    found[case].append(ours / value)
        ratios[measure] = {
            case: round(statistics.geometric_mean(values), 4) for case, values in found.items()
        }
    return {"geometric_mean_ratio": ratios, "queries": queries}


def print_tpch(rows, summary):
    cases = list(dict.fromkeys(row["case"] for row in rows))
    print("query " + "".join(f"{case:>24}" for case in cases) + "   zerohop / best")
    for query, found in summary["queries"].items():
        cells = ""
        for case in cases:
            it = found.get(case)
            cells += "%24s" % (
                "%.3f s \u00b1 %.0f %%, %.0f ms"
                % (it["seconds"], it["spread"] * 100, it["stage_ms"])
                if it
                else "-"
            )
        others = [value["seconds"] for case, value in found.items() if case != "zerohop"]
        both = "zerohop" in found and others
        print(
            f"{query:<6}{cells}"
            + ("%12.2f" % (found["zerohop"]["seconds"] / min(others)) if both else "")
        )
    for measure, ratios in summary["geometric_mean_ratio"].items():
        if ratios:
            over = ", ".join(f"{case} {ratio:.3f}" for case, ratio in ratios.items())
            print(f"geometric mean of {measure}: zerohop over {over}")


def tpch_faults(rows):
    """What failed, and queries whose rows are not the same with every shuffle."""
    checksums = collections.defaultdict(set)
    faults = []
    for row in rows:
        if "error" in row:
            faults.append(
                f"{row['case']} {row['query']} round {row['iteration']}: {row['error'][:200]}"
            )
        else:
            checksums[row["query"]].add(row["checksum"])
    return faults + [
        f"{query}: the shuffles gave different rows"
        for query, sums in checksums.items()
        if len(sums) > 1
    ]


def tpch_goals(rows, summary, scale, gpus):
    """Of what both have run: our speed over the best by files, and queries with the same rows."""
    over = summary["geometric_mean_ratio"]["seconds"].get("best")
    if over is None:
        return []
    checksums = collections.defaultdict(lambda: collections.defaultdict(set))
    for row in rows:
        if "error" not in row:
            checksums[row["query"]][row["case"]].add(row["checksum"])
    equal = sum(
        len(found) > 1 and len(set().union(*found.values())) == 1 for found in checksums.values()
    )
    failed = sum("error" in row and row["case"].startswith("zerohop") for row in rows)
    of = f"TPC-H scale {scale:g}, {gpus} GPUs, "
    return [
        {
            "goal": of + "geometric mean over best by files",
            "at_least": 1.2,
            "value": round(1 / over, 4),
        },
        {
            "goal": of + "queries whose rows equal those of the files",
            "at_least": 22,
            "value": equal,
        },
        {"goal": of + "runs of ours that failed", "at_most": 0, "value": failed},
    ]


def tpch(out, commit_file, file):
    if not pathlib.Path(file).exists():
        sys.exit("no query was run")
    rows = [json.loads(line) for line in open(file)]
    summary = tpch_summary(rows)
    value = measurement(pathlib.Path(out).stem, commit_file, rows)
    value["setting"] = {
        "scale": rows[0]["scale"],
        "iterations": max(row["iteration"] for row in rows),
    }
    value["summary"] = summary
    value["goals"] = tpch_goals(rows, summary, value["setting"]["scale"], value["host"]["gpus"])
    write(out, value)
    print_tpch(rows, summary)
    for goal in value["goals"]:
        print("goal: {}: {}".format(goal["goal"], goal["value"]))
    faults = tpch_faults(rows)
    if faults:
        sys.exit("\n".join(faults))
