#!/usr/bin/env python3
"""Measures a new user's way to the first right result: firsthour.py TARBALL SPARK_HOME

Writes docs/measurements/firsthour.json: seconds from a clone of HEAD by `./demo --quick` to its first
query whose rows are those of sort shuffle and to its end, and seconds from unpacking TARBALL, a
release, by the commands of docs/quick-start.md to the doctor's report; and the size and contrast of
the tab's page with 400 executors, as TabBrowserSuite measures them in Chromium. Maven's repository is the
user's own and has been filled before: downloads are not counted. Nothing else should run meanwhile;
the load before each part is written down."""

import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measurements import write

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "measurements" / "firsthour.json"
LIMIT_SECONDS = 1800
SUITE = "io.zerohop.spark.browser.TabBrowserSuite"
GOALS = {
    "clone": ("first_seconds", "at_most", 240),
    "release": ("first_seconds", "at_most", 60),
    "tab": ("page_bytes", "at_most", 400 * 1024),
    "tab, contrast": ("contrast", "at_least", 4.5),
}


def lines_of(command, folder, environment):
    """Each line that a command prints, and the seconds since its start. It ends within the limit."""
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(LIMIT_SECONDS)
    said = []
    try:
        for line in process.stdout:
            said.append(line.rstrip())
            yield said[-1], time.monotonic() - start
        if process.wait() != 0:
            print("\n".join(said), file=sys.stderr)
            sys.exit(f"firsthour: {command} ended with status {process.returncode}")
    finally:
        signal.alarm(0)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def clone(folder):
    subprocess.run(["git", "clone", "-q", ROOT, folder / "zerohop"], check=True)
    first = built = None
    end = ("", 0)
    for line, seconds in lines_of(["./demo", "--quick"], folder / "zerohop", {}):
        built = built or (seconds if line.startswith("  built in ") else None)
        first = first or (seconds if re.match(r"\[1/\d+\] ", line) else None)
        end = (line, seconds)
    if " mismatches=0" not in end[0]:
        sys.exit(f"firsthour: the demo's last line is: {end[0]}")
    return {"built_seconds": built, "first_seconds": first, "all_seconds": end[1]}


def release(folder, tarball, spark):
    start = time.monotonic()
    subprocess.run(["tar", "-xzf", tarball, "-C", folder], check=True)
    unpacked = time.monotonic() - start
    home = next(path for path in folder.iterdir() if path.name.startswith("zerohop-"))
    environment = {
        "SPARK_HOME": str(spark),
        "ZEROHOP_JAR": str(next(home.glob("zerohop-spark-*.jar"))),
        "MASTER": "spark://127.0.0.1:7077",
        "WORK": str(folder / "work"),
    }
    (folder / "work").mkdir()
    cluster = subprocess.Popen(
        ["examples/standalone/start.sh"],
        cwd=home,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    doctor = ["examples/standalone/submit.sh"]
    for setting in "spark.cores.max=2", "spark.scheduler.minRegisteredResourcesRatio=1.0":
        doctor += ["--conf", setting]
    end = ("", 0)
    doctor += ["--class", "io.zerohop.spark.Doctor", environment["ZEROHOP_JAR"]]
    try:
        for line, seconds in lines_of(doctor, home, environment):
            end = (line, seconds)
    finally:
        cluster.terminate()
        cluster.wait(30)
    if not re.fullmatch(r"\d+ ok, .* 0 failed", end[0]):
        sys.exit(f"firsthour: the doctor's last line is: {end[0]}")
    return {"first_seconds": unpacked + end[1]}


def tab():
    """The largest page and the lowest contrast that the suite says of 400 executors, light and dark."""
    command = ["mvn", "-o", "-B", "verify", "-Dunit.tests.skip=true", f"-Dsuites={SUITE}"]
    pattern = re.compile(r"app-of-400 on .*: (\d+) bytes, contrast ([\d.]+)")
    said = [pattern.search(line) for line, _ in lines_of(command, ROOT, {})]
    pages = [(int(found[1]), float(found[2])) for found in said if found]
    if not pages:
        sys.exit(f"firsthour: {SUITE} measured no page; it needs chromium")
    sizes, contrasts = zip(*pages)
    return {"page_bytes": max(sizes), "contrast": min(contrasts)}


def goal(name, rows):
    field, bound, limit = GOALS[name]
    part = name.split(",")[0]
    value = next(row[field] for row in rows if row["from"] == part)
    return {"goal": f"{field}, from {part}", bound: limit, "value": value}


def main(tarball, spark):
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    parts = {
        "release": lambda folder: release(folder, Path(tarball).resolve(), Path(spark).resolve()),
        "clone": clone,
        "tab": lambda folder: tab(),
    }
    rows = []
    for name, part in parts.items():
        with tempfile.TemporaryDirectory(prefix="zerohop-firsthour-") as folder:
            load = os.getloadavg()[0]
            seconds = part(Path(folder))
        rounded = {key: round(value, 1) for key, value in seconds.items()}
        rows.append({"from": name, "load_before": round(load, 1)} | rounded)
        print(json.dumps(rows[-1]), flush=True)
    content = {
        "bench": "firsthour",
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "host": {"cpu_cores": os.cpu_count(), "kernel": platform.release()},
        "setting": {
            "clone": "./demo --quick",
            "release": "docs/quick-start.md, the doctor",
            "tab": "400 executors, Spark 4.1 (light) and 4.2 (dark)",
        },
        "goals": [goal(name, rows) for name in GOALS],
        "rows": rows,
    }
    write(OUT, content)
    print(f"wrote {OUT}")


if __name__ == "__main__":
    main(*sys.argv[1:])
