"""What a measurement was made on, as the line below its table."""

import itertools
import subprocess
from pathlib import Path

PATHS = Path(__file__).resolve().parents[2] / "docs/measurements/paths.txt"


def code_of(run):
    return f"commit {run['commit'][:12]}, {run['date']}"


def age_of(bench, run):
    """What paths.txt says of a run that is older than a change of its code, or nothing."""
    lines = [
        line.split() for line in PATHS.read_text().splitlines() if line and not line.startswith("#")
    ]
    of = next(
        (words[0] for words in lines if bench in words[1:] and words[0] not in ("set", "older")),
        None,
    )
    ages = []
    for _, name, change, *words in (words for words in lines if words[0] == "older"):
        if name == of:
            known = [
                "git",
                "-C",
                PATHS.parent,
                "merge-base",
                "--is-ancestor",
                change,
                run["commit"],
            ]
            status = subprocess.run(known).returncode
            if status > 1:
                raise SystemExit(f"git does not know {change} or {run['commit']}")
            ages += [" Of " + " ".join(words) + "."] * status
    return "".join(ages)


def provenance(run):
    host = run["host"]
    setting = ", ".join(f"{key} {value}" for key, value in run["setting"].items() if key != "conf")
    conf = run["setting"].get("conf") or {}
    extra = "".join(f", {key}={value}" for key, value in conf.items())
    return (
        f"{host['cpu']}, {host['cpu_cores']} cores, {host['memory_bytes'] / 1e9:.0f} GB, "
        f"Java {host['java']}; {setting}{extra}; {code_of(run)}."
    )


def rounds_of(run):
    """The timed rows of each case."""
    about = ("case", "query", "million_rows", "maps", "partitions", "pool", "executors")
    rows = [row for row in run["rows"] if row.get("iteration", 0) > 0]
    return itertools.groupby(
        sorted(rows, key=lambda row: str([row.get(k) for k in about])),
        key=lambda row: str([row.get(k) for k in about]),
    )


def gpu_provenance(run):
    host = run["host"]
    found = sorted(
        {row["runs"] for row in run["rows"] if "runs" in row}
        or {len(list(group)) for _, group in rounds_of(run)}
    ) or [5]
    rounds = "median of " + (f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}")
    if all("kind" in row for row in run["rows"]):
        rounds = "sums of all rounds"
    if "runs_of_a_query" in run.get("setting", {}):
        rounds = f"up to {run['setting']['runs_of_a_query']} runs of a query"
    link = f", {host['link']}" if "link" in host else ""
    return (
        f"{host['gpus']} x {host['gpu']}{link}, driver {host['driver']}; {rounds}; "
        f"{code_of(run)}."
    )
