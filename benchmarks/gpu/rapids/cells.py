"""What cells of the compatibility matrix have shown on a GPU, a row for each cell and kind of run."""

import json
import pathlib
import re
import sys

from measurement import measurement
from measurements import write

CELL = re.compile(r"(?P<spark>[\d.]+)_(?P<scala>[\d.]+)-(?P<rapids>[\d.]+)-cuda(?P<cuda>\d+)")
FILES = {
    "check": "gpu_rapids.json",
    "paths": "gpu_rapids_paths.json",
    "faults": "gpu_faults.json",
    "checksums": "gpu_checksums.json",
    "tpcds": "gpu_tpcds_check.json",
}

# The cells that have them.
CELLS = {"checksums": 2}

GOALS = {
    "check": "cells whose check has the CPU's rows in every query",
    "paths": "cells whose paths have the CPU's rows, each by its way",
    "faults": "cells whose fault suites pass",
    "checksums": "cells whose row checksums run again what they must, and no more",
    "tpcds": "cells whose tpcds has the CPU's rows in every query",
}


def is_right(each):
    """Whether one case of a step went as it must."""
    if "status" in each:  # A test of a suite.
        return each["status"] == "passed"
    if "as_it_must" in each:
        return each["as_it_must"] is True
    return each.get("equal") is True and each.get("went_its_way", True) and "error" not in each


def row_of(folder, line):
    """A step's row: how many cases there were, and how many went as they must."""
    named = CELL.fullmatch(line["cell"]).groupdict()
    row = {
        "case": line["step"],
        **named,
        "cuda": int(named["cuda"]),
        "commit": line["commit"],
        "exit_status": line["exit_status"],
        "seconds": line["seconds"],
    }
    file = folder / line["cell"] / line["step"] / FILES[line["step"]]
    found = json.loads(file.read_text())["rows"] if file.exists() else []
    row["cases"] = len(found)
    row["equal"] = sum(is_right(each) for each in found)
    for path in ("local", "peer", "ucx", "sent", "staged"):
        row[f"{path}_bytes"] = sum(each.get(f"{path}_bytes", 0) for each in found)
    return row


def cells(out, commit_file, folder):
    folder = pathlib.Path(folder)
    lines = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]
    # The last time counts.
    rows = list({(line["cell"], line["step"]): row_of(folder, line) for line in lines}.values())
    value = measurement("gpu_compatibility", commit_file, rows)
    value["goals"] = [
        {
            "goal": goal,
            "at_least": CELLS.get(case, 7),
            "value": sum(
                row["case"] == case and row["exit_status"] == 0 and 0 < row["cases"] == row["equal"]
                for row in rows
            ),
        }
        for case, goal in GOALS.items()
    ]
    write(out, value)
    for row in rows:
        print(
            f"{row['spark']}_{row['scala']} RAPIDS {row['rapids']} CUDA {row['cuda']}: {row['case']}"
            f" {row['equal']} of {row['cases']} right, staged {row['staged_bytes']}, {row['seconds']} s"
        )
    bad = [
        row for row in rows if row["exit_status"] or row["equal"] < row["cases"] or not row["cases"]
    ]
    if bad:
        sys.exit(f"{len(bad)} runs are not as they should be")
