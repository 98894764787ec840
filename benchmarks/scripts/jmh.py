#!/usr/bin/env python3
"""Turns what JMH prints into docs/measurements/catalog.json.

Usage: mvn -B -q -pl benchmarks/micro -am -Pbenchmarks -DskipTests test | benchmarks/scripts/jmh.py
"""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from measurements import write

ROOT = Path(__file__).resolve().parents[2]


def field(file, name):
    for line in Path(file).read_text().splitlines():
        if line.startswith(name):
            return line.split(":", 1)[1].strip()
    return "0"


def row(result):
    metric = result["primaryMetric"]
    return {
        "case": "zerohop",
        "benchmark": ".".join(result["benchmark"].split(".")[-2:]),
        "params": result.get("params", {}),
        "score": metric["score"],
        "error": metric["scoreError"],
        "unit": metric["scoreUnit"],
        "raw": metric["rawData"],
        "alloc_bytes_per_op": result["secondaryMetrics"]["gc.alloc.rate.norm"]["score"],
    }


def measurement(bench):
    """What a measurement on this machine, of the code that is checked out, says of both."""

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    dirty = "-dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
    return {
        "bench": bench,
        "commit": git("rev-parse", "HEAD") + dirty,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "host": {
            "cpu": field("/proc/cpuinfo", "model name"),
            "cpu_cores": os.cpu_count(),
            "memory_bytes": int(re.sub(r"\D", "", field("/proc/meminfo", "MemTotal"))) * 1024,
            "kernel": platform.release(),
        },
    }


def record(content):
    target = ROOT / "docs" / "measurements" / f"{content['bench']}.json"
    write(target, content)
    print(f"wrote {target}")


def main():
    text = sys.stdin.read()
    # Maven and the JVM may print a line before or after the array.
    results = json.loads(text[text.index("[\n") : text.rindex("]") + 1])
    content = measurement("catalog")
    content["host"]["java"] = results[0]["jdkVersion"]
    content["rows"] = [row(result) for result in results]
    record(content)


if __name__ == "__main__":
    main()
