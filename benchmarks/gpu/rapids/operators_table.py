"""Where the time of applications went, from what scripts/operators.py printed of their event logs."""

import json
import pathlib

from measurement import measurement
from measurements import write


def operators(out, commit_file, *pairs):
    """Pairs are CASE=FILE, each file one line of operators.py."""
    rows = []
    for pair in pairs:
        case, file = pair.split("=", 1)
        found = json.loads(pathlib.Path(file).read_text())
        for kind in ("tasks", "operators"):
            rows += [
                {"case": case, "kind": kind, "part": part.strip(), "seconds": seconds}
                for part, seconds in found[kind].items()
                if part != "tasks"
            ]
    value = measurement(pathlib.Path(out).stem, commit_file, rows)
    write(out, value)
    for row in rows:
        print(f"{row['case']:<24}{row['part']:<36}{row['seconds']:12.1f}")
