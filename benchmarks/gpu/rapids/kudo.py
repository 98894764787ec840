"""RAPIDS' GPU serializer by itself: its costs, and random tables that it has taken apart and put together."""

import json
import pathlib
import re

from measurement import measurement
from measurements import write


def lines(file):
    return [json.loads(line) for line in open(file) if line.startswith("{")]


def sanitizer(folder, tool):
    """What compute-sanitizer has said of a run."""
    text = (folder / f"{tool}.out").read_text()
    found = next((line for line in text.splitlines() if line.startswith("{")), "{}")
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
    return {
        "case": tool,
        **json.loads(found),
        "reports": int(summary.group(1)) if summary else None,
    }


def kudo(out, commit_file, folder):
    folder = pathlib.Path(folder)
    forms = lines(folder / "forms.jsonl")
    rounds = lines(folder / "rounds.jsonl")[0]
    contract = lines(folder / "contract.jsonl")[0]
    checks = [{"case": "rounds", **rounds}] + [
        sanitizer(folder, tool) for tool in ("memcheck", "racecheck")
    ]
    value = measurement(
        "gpu_kudo",
        commit_file,
        [{"case": "form", **row} for row in forms] + checks + [{"case": "contract", **contract}],
    )
    ms = {(row["columns"], row["partitions"], row["step"]): row["ms"] for row in forms}
    value["goals"] = [
        {
            "goal": f"{columns}: split and partitioning at 10,000 partitions over that at 64",
            "at_most": 1.5,
            "value": round(ms[columns, 10000, "kudo_split"] / ms[columns, 64, "kudo_split"], 2),
        }
        for columns in dict.fromkeys(row["columns"] for row in forms)
        if (columns, 10000, "kudo_split") in ms
    ]
    # What decides whether blocks of an own form replace the serializer's (docs/internals/decisions).
    for columns, partitions, step, at_most in (
        ("longs", 2000, "own_write", 1.0),
        ("longs", 2000, "own_read", 1.5),
        ("hundred", 10000, "own_read", 15.0),
    ):
        if (columns, partitions, step) in ms:
            partition = ms[columns, partitions, "partition"] if step == "own_write" else 0
            value["goals"].append(
                {
                    "goal": f"own form, {columns}, {partitions} partitions: ms a batch of {step}, without partitioning",
                    "at_most": at_most,
                    "value": round(ms[columns, partitions, step] - partition, 2),
                }
            )
    value["goals"] += [
        {"goal": "random tables put together wrong", "at_most": 0, "value": rounds["wrong"]},
        {"goal": "tests of cudf's rules that failed", "at_most": 0, "value": contract["failed"]},
        *(
            {"goal": f"reports of {check['case']}", "at_most": 0, "value": check["reports"]}
            for check in checks[1:]
        ),
    ]
    for columns, partitions in dict.fromkeys((row["columns"], row["partitions"]) for row in forms):
        print(
            f"{columns:<8} {partitions:>6}",
            *(
                f"{step} {ms[columns, partitions, step]:.1f}"
                for step in (
                    "partition",
                    "contiguous_split",
                    "chunked_pack",
                    "kudo_split",
                    "kudo_assemble",
                    "own_write",
                    "own_read",
                )
                if (columns, partitions, step) in ms
            ),
        )
    for goal in value["goals"]:
        print(goal)
    write(out, value)
