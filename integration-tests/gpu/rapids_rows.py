#!/usr/bin/env python3
"""Makes a measurement of what rapids.sh has seen, and prints it as a table.

  rapids_rows.py check COMMIT_FILE OUT.json RESULT.json ...
  rapids_rows.py bench COMMIT_FILE OUT.json BENCH.jsonl
  rapids_rows.py checksums COMMIT_FILE OUT.json RETRY.json BENCH.jsonl
  rapids_rows.py demo COMMIT_FILE OUT.json BENCH.jsonl
  rapids_rows.py rows COMMIT_FILE OUT.json HOST_JOB.json
"""

import collections
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

import plot


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


def timed(file):
    """All rows, and those that were timed by what was asked and whom. Stops at differing results."""
    rows = [json.loads(line) for line in open(file)]
    groups = collections.defaultdict(list)
    results = collections.defaultdict(set)
    for row in rows:
        key = (row["query"], row["million_rows"], row["partitions"])
        results[key].add(row.pop("result"))
        if row["iteration"] > 0:
            groups[key + (row["pool"], row["case"])].append(row)
    for key, different in results.items():
        if len(different) > 1:
            sys.exit(f"{key}: the shuffles gave different results: {different}")
    return rows, groups


def middle(group, field):
    return statistics.median(row[field] for row in group)


def bench(file):
    rows, groups = timed(file)
    for key, group in sorted(groups.items()):
        least, most = (f(row["exchange_ms"] for row in group) for f in (min, max))
        print("%-12s %3d M rows %5d partitions %s %-14s" % key,
              "write %5.0f read %5.0f exchange %5.0f (%.0f to %.0f) ms, whole %.3f s" % (
                  middle(group, "write_ms"), middle(group, "read_ms"), middle(group, "exchange_ms"),
                  least, most, middle(group, "seconds")))
    return rows


def checksums(retry, timings):
    """Who ran again when an executor was lost, and what exchanges cost, without checksums and with."""
    rows = []
    if pathlib.Path(retry).exists():
        rows = [{"run": "retry", **row} for row in json.loads(pathlib.Path(retry).read_text())["rows"]]
    else:
        print("retry: no result")
    return rows + [{"run": "cost", **row} for row in bench(timings)]


def demo(out, file):
    """Zerohop beside another shuffle, for people: a table, and a plot beside the measurement."""
    rows, groups = timed(file)
    cases = list(dict.fromkeys(row["case"] for row in rows))
    other, found = cases[0], {}
    print(f"\n{'query':<12} partitions   GB  {other + ' ms':>20}  {'zerohop ms':>10}  times faster  over NVLink")
    for key in dict.fromkeys(key[:-1] for key in groups):
        of = {case: groups[key + (case,)] for case in cases}
        times = {case: [row["exchange_ms"] for row in of[case]] for case in cases}
        middles = {case: statistics.median(times[case]) for case in cases}
        ours = of["zerohop"][-1]
        share = ours["peer_bytes"] / max(1, ours["peer_bytes"] + ours["local_bytes"] + ours["staged_bytes"])
        print(f"{key[0]:<12} {key[2]:>10,} {ours['shuffle_bytes'] / 1e9:>4.1f}  {middles[other]:>20.0f}"
              f"  {middles['zerohop']:>10.0f}  {middles[other] / middles['zerohop']:>12.1f}  {share:>11.0%}")
        found[f"{key[0]} to {key[2]:,}"] = {
            case: (middles[case], plot.spread(times[case])) for case in cases}
    picture = pathlib.Path(out).with_suffix(".svg")
    picture.write_text(plot.bars(found, cases, "Stages of an exchange (less is better)", "ms"))
    print(f"\nEvery result is the same with both. The plot is {picture}")
    return rows


def rows(out, file):
    """A measurement of the job benchmark under a name of its own, with the GPUs it ran on."""
    value = json.loads(pathlib.Path(file).read_text())
    value["bench"] = pathlib.Path(out).stem
    value["host"] |= host()
    pathlib.Path(out).write_text(json.dumps(value, indent=2) + "\n")


def main():
    kind, commit_file, out, *files = sys.argv[1:]
    name = pathlib.Path(out).stem
    if kind == "rows":
        rows(out, files[0])
        return
    if kind == "check":
        found = check(files)
    elif kind == "checksums":
        found = checksums(*files)
    else:
        found = demo(out, files[0]) if kind == "demo" else bench(files[0])
    write(out, measurement(name, commit_file, found))


main()
