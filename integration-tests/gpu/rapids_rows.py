#!/usr/bin/env python3
"""Makes a measurement of what rapids.sh has seen, and prints it as a table.

  rapids_rows.py check COMMIT_FILE OUT.json RESULT.json ...
  rapids_rows.py bench COMMIT_FILE OUT.json BENCH.jsonl
  rapids_rows.py rows COMMIT_FILE OUT.json HOST_JOB.json
  rapids_rows.py faults COMMIT_FILE OUT.json JUNIT.xml ...
"""

import collections
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import xml.etree.ElementTree


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


def faults(files):
    rows = []
    for file in files:
        for test in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
            tags = {child.tag for child in test}
            status = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
            rows.append({"suite": test.get("classname").split(".")[-1], "test": test.get("name"),
                         "status": status, "seconds": float(test.get("time"))})
    print(", ".join(f"{count} {status}" for status, count in collections.Counter(row["status"] for row in rows).items()))
    return rows


def main():
    kind, commit_file, out, *files = sys.argv[1:]
    name = pathlib.Path(out).stem
    if kind == "rows":
        rows(out, files[0])
        return
    kinds = {"check": check, "faults": faults, "bench": lambda given: bench(given[0])}
    write(out, measurement(name, commit_file, kinds[kind](files)))


main()
