"""What was compared, tested or proved, as rows of a measurement."""

import collections
import json
import pathlib
import sys
import xml.etree.ElementTree

from exchanges import bench
from measurement import host
from measurements import write


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
            for path in ("local", "peer", "ucx", "sent", "staged"):
                total[path] += row.get(path + "_bytes", 0)
            for side in ("gpu", "cpu"):
                if side + "_exchanges" in row:
                    total[side + " exchanges"] += row[side + "_exchanges"]
        equal = sum(row["equal"] for row in results)
        print(
            f"{file.stem}: {equal} of {len(results)} equal, "
            + ", ".join(f"{p} {b}" for p, b in total.items())
        )
    return rows


def nodes(files):
    """What was logged of peers, exchanges that were timed, and queries that were compared."""
    peers, timings, *results = files
    rows = [json.loads(line) for line in open(peers)]
    return rows + bench(timings) + check(results)


def faults(files):
    rows = []
    for file in files:
        for test in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
            tags = {child.tag for child in test}
            status = (
                "failed"
                if tags & {"failure", "error"}
                else "skipped"
                if "skipped" in tags
                else "passed"
            )
            rows.append(
                {
                    "suite": test.get("classname").split(".")[-1],
                    "test": test.get("name"),
                    "status": status,
                    "seconds": float(test.get("time")),
                }
            )
    print(
        ", ".join(
            f"{count} {status}"
            for status, count in collections.Counter(row["status"] for row in rows).items()
        )
    )
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
        print(
            "%-13s %-11s" % (row["case"], row["query"]),
            *(
                f"{name} {mb(row[name + '_bytes'])},"
                for name in ("shuffle", "local", "peer", "staged")
            ),
            f"copies: {kinds or 'none'} MB; over the host {row['host_copy_share']:.4f},",
            "NVLink not compared" if nvlink is None else f"NVLink {nvlink:.4f} of peer",
        )
        for problem in row["problems"]:
            print("  BAD:", problem)
    for query, different in results.items():
        if len(different) > 1:
            sys.exit(f"{query}: the shuffles gave different results: {different}")
    return rows


def pressure(file):
    rows = [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()]
    for row in rows:
        print(
            "%-7s" % row["case"],
            f"pool {mb(row.get('pool_bytes', 0))} MB, given ahead {mb(row.get('ballast_shrunk_bytes', 0))} MB;",
            f"one allocation: {row.get('allocation')}, given {mb(row.get('allocation_shrunk_bytes', 0))} MB;",
            f"query: {row.get('query')}, given {mb(row.get('query_shrunk_bytes', 0))} MB,",
            f"spilled {mb(row.get('query_spilled_bytes', 0))} MB, failed tasks {row.get('failed_tasks')}",
        )
        for problem in row["problems"]:
            print("  BAD:", problem)
    return rows


def mb(count):
    return f"{count / 1e6:.1f}"


def rows(out, file):
    """A measurement of the job benchmark under a name of its own, with the GPUs it ran on."""
    value = json.loads(pathlib.Path(file).read_text())
    value["bench"] = pathlib.Path(out).stem
    value["host"] |= host()
    write(out, value)
