#!/usr/bin/env python3
"""Makes a measurement of what rapids.sh has seen, and prints it as a table.

  rapids_rows.py check COMMIT_FILE OUT.json RESULT.json ...
  rapids_rows.py bench COMMIT_FILE OUT.json BENCH.jsonl
  rapids_rows.py demo COMMIT_FILE OUT.json BENCH.jsonl
  rapids_rows.py proof COMMIT_FILE OUT.json RESULT.json ...
  rapids_rows.py rows COMMIT_FILE OUT.json HOST_JOB.json
  rapids_rows.py faults COMMIT_FILE OUT.json JUNIT.xml ...
  rapids_rows.py tpch COMMIT_FILE OUT.json TPCH.jsonl
"""

import collections
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import xml.etree.ElementTree

import plot


def host():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpus = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().split("\n")
    name, driver = gpus[0].split(", ")
    cores = len([line for line in open("/proc/cpuinfo") if line.startswith("processor")])
    seen = {"gpu": name, "gpus": len(gpus), "driver": driver, "cpu_cores": cores}
    topology = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True).stdout
    links = re.findall(r"\bNV\d+\b", topology)
    return seen | ({"link": links[0]} if links else {})


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


def timed(file):
    """All rows, and those that were timed by what was asked and whom. Stops at differing results."""
    rows = [json.loads(line) for line in open(file)]
    groups = collections.defaultdict(list)
    results = collections.defaultdict(set)
    for row in rows:
        key = (row["query"], row["million_rows"], row["partitions"], row["executors"])
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
        print("%-12s %3d M rows %5d partitions %d GPUs %s %-14s" % key,
              "write %5.0f read %5.0f exchange %5.0f (%.0f to %.0f) ms, whole %.3f s" % (
                  middle(group, "write_ms"), middle(group, "read_ms"), middle(group, "exchange_ms"),
                  least, most, middle(group, "seconds")))
    return rows


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


def proof(files):
    rows = []
    for file in map(pathlib.Path, files):
        if file.exists():
            rows += json.loads(file.read_text())["rows"]
        else:
            print(f"{file.stem}: no result")
    results = collections.defaultdict(set)
    for row in rows:
        results[row["query"]].add(row.pop("result"))
        nvlink = row["nvlink_share_of_peer"]
        kinds = ", ".join(f"{kind} {mb(count)}" for kind, count in row["copy_bytes"].items())
        print("%-13s %-11s" % (row["case"], row["query"]),
              *(f"{name} {mb(row[name + '_bytes'])}," for name in ("shuffle", "local", "peer", "staged")),
              f"copies: {kinds or 'none'} MB; over the host {row['host_copy_share']:.4f},",
              "NVLink not compared" if nvlink is None else f"NVLink {nvlink:.4f} of peer")
        for problem in row["problems"]:
            print("  BAD:", problem)
    for query, different in results.items():
        if len(different) > 1:
            sys.exit(f"{query}: the shuffles gave different results: {different}")
    return rows


def mb(count):
    return f"{count / 1e6:.1f}"


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
    readers = {"check": check, "proof": proof, "faults": faults, "bench": lambda found: bench(found[0]),
               "demo": lambda found: demo(out, found[0])}
    write(out, measurement(name, commit_file, readers[kind](files)))


main()
