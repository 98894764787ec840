"""A segment's way to host memory and back, as it is and compressed on the GPU."""

import json

from measurement import measurement
from measurements import write

KEYS = ("ratio", "compress_ms", "down_ms", "up_ms", "decompress_ms", "times_as_fast_pipelined")


def tiers(out, commit_file, file):
    rows = [json.loads(line) for line in open(file)]
    value = measurement("gpu_tiers", commit_file, [{"case": "segment", **row} for row in rows])
    value["host"]["gpus"] = 1
    packed = [row for row in rows if row["codec"] != "none"]
    value["goals"] = [
        {
            "goal": "compressible data (not random), codec lz4 or zstd: least times as fast as plain copies, there and back",
            "at_least": 1.8,
            "value": min(
                row["times_as_fast_pipelined"] for row in packed if row["data"] != "random"
            ),
        },
        {
            "goal": "the same, the best of all rows",
            "at_least": 1.8,
            "value": max(row["times_as_fast_pipelined"] for row in packed),
        },
    ]
    write(out, value)
    for row in rows:
        print(f"{row['data']:8} {row['mib']:5} {row['codec']:5}", *(row[key] for key in KEYS))
