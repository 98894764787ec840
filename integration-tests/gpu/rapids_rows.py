#!/usr/bin/env python3
"""Makes a measurement of what rapids.sh has seen, and prints it as a table.

  rapids_rows.py check COMMIT_FILE OUT.json RESULT.json ...
  rapids_rows.py bench COMMIT_FILE OUT.json BENCH.jsonl
  rapids_rows.py rows COMMIT_FILE OUT.json HOST_JOB.json
  rapids_rows.py tpch COMMIT_FILE OUT.json TPCH.jsonl
"""

import collections
import datetime
import json
import pathlib
import statistics
import subprocess
import sys


def host():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpus = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().split("\n")
    name, driver = gpus[0].split(", ")
    cores = len([line for line in open("/proc/cpuinfo") if line.startswith("processor")])
    return {"gpu": name, "gpus": len(gpus), "driver": driver, "cpu_cores": cores}


def measurement(bench, commit_file, rows):
    return {
        "bench": bench,
        "commit": pathlib.Path(commit_file).read_text().strip(),
        "date": datetime.date.today().isoformat(),
        "host": host(),
        "rows": rows,
    }


def write(out, value):
    rows = ",\n  ".join(json.dumps(row) for row in value.pop("rows"))
    head = json.dumps(value)[:-1]
    pathlib.Path(out).write_text(head + ',\n "rows": [\n  ' + rows + "\n ]}\n")


def check(files):
    rows = []
    for file in map(pathlib.Path, files):
        if not file.exists():
            print(f"{file.stem}: no result")
            continue
        results = json.loads(file.read_text())["rows"]
        rows += [{"run": file.stem, **row} for row in results]
        total = collections.Counter()
        for row in results:
            for path in ("local", "peer", "staged"):
                total[path] += row.get(path + "_bytes", 0)
            for side in ("gpu", "cpu"):
                if side + "_exchanges" in row:
                    total[side + " exchanges"] += row[side + "_exchanges"]
        equal = sum(row["equal"] for row in results)
        print(f"{file.stem}: {equal} of {len(results)} equal, " + ", ".join(f"{p} {b}" for p, b in total.items()))
    return rows


def bench(file):
    rows = [json.loads(line) for line in open(file)]
    groups = collections.defaultdict(list)
    results = collections.defaultdict(set)
    for row in rows:
        key = (row["query"], row["million_rows"], row["partitions"])
        results[key].add(row.pop("result"))
        if row["iteration"] > 0:
            groups[key + (row["case"],)].append(row)
    for key, group in sorted(groups.items()):
        figure = {name: statistics.median(row[name] for row in group)
                  for name in ("write_ms", "read_ms", "exchange_ms", "seconds")}
        least, most = (f(row["exchange_ms"] for row in group) for f in (min, max))
        print("%-12s %3d M rows %5d partitions %-14s" % key,
              "write %5.0f read %5.0f exchange %5.0f (%.0f to %.0f) ms, whole %.3f s"
              % (*list(figure.values())[:3], least, most, figure["seconds"]))
    for key, different in results.items():
        if len(different) > 1:
            sys.exit(f"{key}: the shuffles gave different results: {different}")
    return rows


def rows(out, file):
    """A measurement of the job benchmark under a name of its own, with the GPUs it ran on."""
    value = json.loads(pathlib.Path(file).read_text())
    value["bench"] = pathlib.Path(out).stem
    value["host"] |= host()
    pathlib.Path(out).write_text(json.dumps(value, indent=2) + "\n")


def figures(rows):
    """Medians of one contender and one query, and half the interquartile range of its seconds."""
    seconds = [row["seconds"] for row in rows]
    middle = statistics.median(seconds)
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive") if len(rows) > 1 else [middle] * 3
    return {
        "seconds": round(middle, 4),
        "spread": round((high - low) / 2 / middle, 4),
        "stage_ms": statistics.median(row["stage_ms"] for row in rows),
        "runs": len(rows),
    }


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
    queries = {query: {case: figures(group) for case, group in groups[query].items()} for query in order}
    ratios = {}
    for measure in ("seconds", "stage_ms"):
        found = collections.defaultdict(list)
        for cases in queries.values():
            ours = cases.get("zerohop", {}).get(measure)
            others = {case: value[measure] for case, value in cases.items() if case != "zerohop" and value[measure]}
            if ours and others:
                for case, value in [*others.items(), ("best", min(others.values()))]:
                    found[case].append(ours / value)
        ratios[measure] = {case: round(statistics.geometric_mean(values), 4) for case, values in found.items()}
    return {"geometric_mean_ratio": ratios, "queries": queries}


def print_tpch(rows, summary):
    cases = list(dict.fromkeys(row["case"] for row in rows))
    print("query " + "".join(f"{case:>24}" for case in cases) + "   zerohop / best")
    for query, found in summary["queries"].items():
        cells = ""
        for case in cases:
            it = found.get(case)
            cells += "%24s" % ("%.3f s \u00b1 %.0f %%, %.0f ms" % (it["seconds"], it["spread"] * 100, it["stage_ms"]) if it else "-")
        others = [value["seconds"] for case, value in found.items() if case != "zerohop"]
        both = "zerohop" in found and others
        print(f"{query:<6}{cells}" + ("%12.2f" % (found["zerohop"]["seconds"] / min(others)) if both else ""))
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
            faults.append(f"{row['case']} {row['query']} round {row['iteration']}: {row['error'][:200]}")
        else:
            checksums[row["query"]].add(row["checksum"])
    return faults + [f"{query}: the shuffles gave different rows" for query, sums in checksums.items() if len(sums) > 1]


def tpch(out, commit_file, file):
    if not pathlib.Path(file).exists():
        sys.exit("no query was run")
    rows = [json.loads(line) for line in open(file)]
    summary = tpch_summary(rows)
    value = measurement(pathlib.Path(out).stem, commit_file, rows)
    value["setting"] = {"scale": rows[0]["scale"], "iterations": max(row["iteration"] for row in rows)}
    value["summary"] = summary
    write(out, value)
    print_tpch(rows, summary)
    faults = tpch_faults(rows)
    if faults:
        sys.exit("\n".join(faults))


def main():
    kind, commit_file, out, *files = sys.argv[1:]
    name = pathlib.Path(out).stem
    if kind == "tpch":
        tpch(out, commit_file, files[0])
        return
    if kind == "rows":
        rows(out, files[0])
        return
    write(out, measurement(name, commit_file, check(files) if kind == "check" else bench(files[0])))


main()
