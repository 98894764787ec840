#!/usr/bin/env python3
"""Which measurements of GPUs are of older code than what is checked out, and by how many commits.

A report and no failure: whether a change matters to a figure is for who made it to say.
"""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NATIVE = ["native/src/main"]
ALL = [*NATIVE, "shuffle/src/main", "plugin/src/main"]

# What a measurement depends on if that is not all of the product.
LESS = {
    "gpu_tests": NATIVE, "gpu_tests_one": NATIVE, "gpu_sanitize": NATIVE, "gather": NATIVE, "gather_shapes": NATIVE,
    "alltoall": NATIVE, "alltoall_engines": NATIVE, "signal": NATIVE, "host_link": NATIVE,
    "gpu_kudo": ["benchmarks/gpu/rapids/KudoRounds.java", "benchmarks/gpu/rapids/SplitForms.java",
                 "benchmarks/gpu/rapids/CudfContract.java", "plugin/src/test/java/io/zerohop/spark/rapids/gpu"],
}


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)


def changes(commit, paths):
    """Commits since, or None if that one is not known here."""
    found = git("log", "--oneline", f"{commit}..HEAD", "--", *paths)
    return len(found.stdout.splitlines()) if found.returncode == 0 else None


def main():
    for file in sorted((ROOT / "docs/measurements").glob("*.json")):
        head = json.loads(file.read_text())
        if "gpu" not in head.get("host", {}):
            continue
        commit = head["commit"].removesuffix("-dirty")
        count = changes(commit, LESS.get(file.stem, ALL))
        about = "its commit is not known here" if count is None else f"{count} commits behind" if count else "up to date"
        print(f"{file.stem:<24} {commit[:12]} {head['date']}  {about}")


if __name__ == "__main__":
    main()
