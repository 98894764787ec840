"""What a measurement on GPUs says of its host, and of those who were timed."""

import collections
import datetime
import os
import pathlib
import re
import statistics
import subprocess


def host():
    """The part of the host that was used: other runs may have had the rest."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpus = (
        subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().split("\n")
    )
    name, driver = gpus[0].split(", ")
    seen = {
        "gpu": name,
        "gpus": int(os.environ.get("GPUS") or len(gpus)),
        "driver": driver,
        "cpu_cores": len(os.sched_getaffinity(0)),
    }
    if os.environ.get("PER_GPU"):
        seen["executors_per_gpu"] = int(os.environ["PER_GPU"])
    if os.environ.get("BESIDE"):
        seen["beside"] = os.environ["BESIDE"]
    topology = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True).stdout
    links = re.findall(r"\bNV\d+\b", topology)
    return seen | ({"link": links[0]} if links else {})


def figures(rows):
    """Medians of one contender and one query, and half the interquartile range of its seconds."""
    seconds = [row["seconds"] for row in rows]
    middle = statistics.median(seconds)
    low, _, high = (
        statistics.quantiles(seconds, n=4, method="inclusive") if len(rows) > 1 else [middle] * 3
    )
    return {
        "seconds": round(middle, 4),
        "spread": round((high - low) / 2 / middle, 4),
        "stage_ms": statistics.median(row["stage_ms"] for row in rows),
        "runs": len(rows),
    }


def equal_queries(rows):
    """How many queries of several contenders gave all of them, in every round, the same rows."""
    checksums = collections.defaultdict(lambda: collections.defaultdict(set))
    for row in rows:
        if "error" not in row:
            checksums[row["query"]][row["case"]].add(row["checksum"])
    return sum(
        len(found) > 1 and len(set().union(*found.values())) == 1 for found in checksums.values()
    )


def measurement(bench, commit_file, rows):
    return {
        "bench": bench,
        "commit": pathlib.Path(commit_file).read_text().strip(),
        "date": datetime.date.today().isoformat(),
        "host": host(),
        "rows": rows,
    }
