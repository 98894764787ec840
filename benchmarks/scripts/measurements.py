"""How a measurement is written: its head, then a line for each row, so that a change can be read.

measurements.py FILE ... writes files in that form that have another.
"""

import json
import sys
from pathlib import Path


def text(content):
    head = json.dumps({name: value for name, value in content.items() if name != "rows"})
    rows = ",\n  ".join(map(json.dumps, content["rows"]))
    return head[:-1] + ',\n "rows": [\n  ' + rows + "\n ]}\n"


def write(file, content):
    Path(file).write_text(text(content))


def main(*files):
    for file in files:
        write(file, json.loads(Path(file).read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
