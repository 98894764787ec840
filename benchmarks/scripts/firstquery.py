#!/usr/bin/env python3
"""Times the first query of an application: firstquery.py [BEFORE.jar [TURNS]]

Writes docs/measurements/first_query.json: seconds of a new executor's first map task, and of the
first and the third query in a new application, beside sort shuffle and, if its jar is named, beside
the tree before.
One executor in a process of its own that runs one task at a time, so that a processor is left for
what starts in the background. Contenders take turns. Needs the built tree; nothing else should run
meanwhile."""

import datetime
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measurements import write

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "measurements" / "first_query.json"
LIMIT_SECONDS = 120
QUERIES = 3
SPARK = ROOT / "benchmarks/spark/target/spark-home"
OURS = ["--conf", "spark.plugins=io.zerohop.spark.ZerohopPlugin"]
MASTER = "local-cluster[1,1,1024]"


def run(jar, settings, folder):
    """The seconds of the first task of an application, and of each of its queries."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (home / "jars").symlink_to(SPARK / "jars")
    shutil.copy(SPARK / "RELEASE", home)
    paths = ["--conf", f"spark.executor.extraClassPath={jar}"]
    command = ["java", "-Xmx1g", f"@{ROOT}/benchmarks/spark/java.options"]
    command += ["-cp", f"{jar}:{SPARK}/jars/*", "org.apache.spark.deploy.SparkSubmit"]
    command += ["--master", MASTER, "--conf", "spark.ui.enabled=false", *paths, *settings]
    command += ["--class", "FirstQuery", str(folder / "first.jar"), str(QUERIES)]
    done = subprocess.run(
        command,
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    # A listener says the first, from a thread of its own.
    seconds = [re.findall(rf"(?m)^{what} ([\d.]+)$", done.stdout) for what in ("task", "query")]
    if [len(each) for each in seconds] != [1, QUERIES]:
        raise SystemExit(f"no times:\n{done.stderr[-2000:]}")
    return [float(one) for each in seconds for one in each]


def main(before=None, turns="9"):
    ours = next(ROOT.glob("plugin/target/zerohop-spark-*-SNAPSHOT.jar"))
    cases = {"sort": (ours, []), "zerohop": (ours, OURS)}
    if before:
        cases["zerohop before"] = (Path(before).resolve(), OURS)
    seen = {case: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="zerohop-first-") as name:
        folder = Path(name)
        source = Path(__file__).with_name("FirstQuery.java")
        subprocess.run(
            ["javac", "-cp", f"{SPARK}/jars/*", "-d", folder / "classes", source], check=True
        )
        subprocess.run(
            ["jar", "cf", folder / "first.jar", "-C", folder / "classes", "."], check=True
        )
        for turn in range(int(turns)):
            for case, (jar, settings) in cases.items():
                seconds = run(jar, settings, folder)
                seen[case].append(seconds)
                print(turn, case, *(f"{one:.2f}" for one in seconds), flush=True)
    rows = []
    for case, runs in seen.items():
        tasks, queries = sorted(one[0] for one in runs), sorted(one[1] for one in runs)
        rows.append(
            {
                "case": case,
                "first_task_seconds": round(statistics.median(tasks), 3),
                "least": round(tasks[0], 3),
                "most": round(tasks[-1], 3),
                "first_query_seconds": round(statistics.median(queries), 3),
                "third_query_seconds": round(statistics.median(one[3] for one in runs), 3),
                "runs": len(runs),
            }
        )
    of = {row["case"]: row for row in rows}
    goals = [
        {
            "goal": f"{name} seconds, over those of {other}",
            "at_most": most,
            "value": round(of["zerohop"][field] / of[other][field], 3),
        }
        for name, field, other, most in (
            ("first query's", "first_query_seconds", "sort", 1.05),
            ("first map task's", "first_task_seconds", "zerohop before", 0.95),
            ("first query's", "first_query_seconds", "zerohop before", 1.0),
        )
        if other in of
    ]
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    if subprocess.check_output([*git, "status", "--porcelain"], text=True).strip():
        commit += "-dirty"
    write(
        OUT,
        {
            "bench": "first_query",
            "commit": commit,
            "date": datetime.date.today().isoformat(),
            "host": {"cpu_cores": os.cpu_count(), "kernel": platform.release()},
            "setting": {
                "master": MASTER,
                "turns": int(turns),
                "conf": {"spark.ui.enabled": "false"},
            },
            "goals": goals,
            "rows": rows,
        },
    )
    print(OUT.read_text())


main(*sys.argv[1:])
