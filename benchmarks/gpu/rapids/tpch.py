"""TPC-H that was timed, and a job that writes tables."""

import collections
import json
import pathlib
import statistics
import sys

from measurement import equal_queries, figures, measurement
from measurements import write


def number(query):
    return int(query[1:])


def tpch_summary(rows, order=number):
    """Per query the figures of each contender, and geometric means of our times over the others'.

    A ratio is taken over the queries that both have run. That to "best" is over the contender with
    the least median of each query.
    """
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if row["iteration"] > 0 and "error" not in row:
            groups[row["query"]][row["case"]].append(row)
    queries = {
        query: {case: figures(group) for case, group in groups[query].items()}
        for query in sorted(groups, key=order)
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
            "value": equal_queries(rows),
        },
        {"goal": of + "runs of ours that failed", "at_most": 0, "value": failed},
    ]


def etl_goals(rows, summary, scale, gpus):
    """Of the writes alone: what they wrote is read afterwards, to be compared."""
    over = tpch_summary([row for row in rows if row["query"] != "rows"], str)[
        "geometric_mean_ratio"
    ]
    of = f"ETL of TPC-DS scale {scale:g}, {gpus} GPUs, geometric mean over best by files, "
    return [
        {
            "goal": of + measure,
            "at_least": least,
            "value": round(1 / over[measure]["best"], 4) if over[measure] else None,
        }
        for measure, least in (("seconds", 1.0), ("stage_ms", 1.2))
    ]


def tpch(out, commit_file, file):
    timed(out, commit_file, file, number, tpch_goals)


def etl(out, commit_file, file):
    timed(out, commit_file, file, str, etl_goals)


def timed(out, commit_file, file, order, goals):
    if not pathlib.Path(file).exists():
        sys.exit("no query was run")
    rows = [json.loads(line) for line in open(file)]
    summary = tpch_summary(rows, order)
    value = measurement(pathlib.Path(out).stem, commit_file, rows)
    value["setting"] = {
        "scale": rows[0]["scale"],
        "iterations": max(row["iteration"] for row in rows),
    }
    value["summary"] = summary
    value["goals"] = goals(rows, summary, value["setting"]["scale"], value["host"]["gpus"])
    write(out, value)
    print_tpch(rows, summary)
    for goal in value["goals"]:
        print("goal: {}: {}".format(goal["goal"], goal["value"]))
    faults = tpch_faults(rows)
    if faults:
        sys.exit("\n".join(faults))
