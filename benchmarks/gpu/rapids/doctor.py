"""What the doctor and the tab GPU Shuffle say where there are GPUs, and whether they must."""

import collections
import json
import pathlib
import re
import sys

from measurement import measurement
from measurements import write

ON_A_GPU = {"driver": "ok", "kernels": "ok", "nvlink": "ok", "p2p": "ok"}

# The verdicts of a run that are known beforehand.
EXPECTED = {
    "alone": ON_A_GPU,
    "keys": {
        **ON_A_GPU,
        "spark": "ok",
        "rapids": "ok",
        "manager": "ok",
        "steps-aside": "ok",
        "gpu-shuffles": "ok",
        "sizes": "ok",
    },
    "one_gpu": {"driver": "ok", "kernels": "ok", "p2p": "skip"},
    "no_gpu_seen": {"driver": "warn", "kernels": "skip"},
    "no_kernels": {"driver": "ok", "kernels": "fail"},
    "job": {"gpu-shuffles": "ok", "driver": "ok", "kernels": "ok", "reach": "ok"},
}
PATHS_MEASURED = {
    "alone": {"local", "host", "nvlink"},
    "one_gpu": {"local", "host"},
    "job": {"local", "host"},
}

REPORT = "io.zerohop.spark.ui.ShuffleReportEvent"

# A row of the tab's table by path: the second number is bytes.
BYTES = r'<td>%s</td><td sorttable_customkey="(\d+)">[^<]*</td><td sorttable_customkey="(\d+)">'


def report_of(file):
    """The report, behind what else has written to standard output."""
    text = file.read_text()
    return json.loads(text[text.index("{") :])


def as_row(finding):
    """A finding without the folder of a jar, and without a mend if there is none."""
    what = re.sub(r"/\S*/([^/\s]+[.]jar)", r"\1", finding["what"])
    return {name: value for name, value in {**finding, "what": what}.items() if value}


def examined(case, file):
    rows = []
    for process in report_of(file)["processes"]:
        of = {"case": case, "process": process["process"]}
        rows += [{**of, **as_row(finding)} for finding in process["findings"]]
        rows += [{**of, "check": "rates", **rate} for rate in process["rates"]]
    return rows


def is_of_gpu(row):
    return row.get("to", "").startswith("cuda")


def problems_of(case, rows):
    """What is not as it must be; all findings of a check must have the verdict."""
    for check, verdict in EXPECTED[case].items():
        found = {row["verdict"] for row in rows if row["check"] == check and "verdict" in row}
        if found != {verdict}:
            yield f"{case}: {check} says {sorted(found) or 'nothing'}, not {verdict}"
    slow = [
        f"{row['path']} {row['from']} {row['to']}"
        for row in rows
        if is_of_gpu(row) and row["gigabytesPerSecond"] < row["expected"] / 2
    ]
    if slow:
        yield f"{case}: slower than half of what is expected: {slow}"
    missing = PATHS_MEASURED.get(case, set()) - {row["path"] for row in rows if is_of_gpu(row)}
    if missing:
        yield f"{case}: no rate of {sorted(missing)}"


def bytes_of_tasks(events):
    """What tasks reported by each path."""
    total = collections.Counter()
    for event in events:
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        for each in event["Task Info"]["Accumulables"]:
            named = re.fullmatch(r"zerohop\.(\w+)\.bytes", each.get("Name") or "")
            if named and "Update" in each:
                total[named[1]] += int(each["Update"])
    return total


def tab(folder, events):
    """What tasks said, and the tab, live and replayed."""
    total = bytes_of_tasks(events)
    row = {
        "case": "tab",
        "local_bytes": total["local"],
        "peer_bytes": total["peer"],
        "staged_bytes": total["staged"],
    }
    for page in ("live", "history"):
        text = (folder / f"tab-{page}.html").read_text()
        for path in ("local", "peer"):
            links = re.findall(BYTES % path, text)
            row[f"{page}_{path}_bytes"] = sum(int(link[1]) for link in links)
        row[f"{page}_advice"] = "nothing makes Zerohop leave shuffles to Spark" in text
    row["gpu_memory_bytes"] = max(
        memory_of(event["report"]) for event in events if event["Event"] == REPORT
    )
    return row


def log_of_tab(events):
    """The part of the event log that the tab is made of, as a small one for a suite to replay."""
    kept = []
    for event in events:
        if event["Event"] == "SparkListenerApplicationStart":
            event = event | {"App Name": "two GPUs", "App ID": "app-of-two-gpus", "User": "spark"}
        elif event["Event"] not in (REPORT, "SparkListenerLogStart", "SparkListenerApplicationEnd"):
            continue
        kept.append(json.dumps(event, separators=(",", ":")))
    return "\n".join(kept) + "\n"


def memory_of(report):
    """Of map outputs in an executor's GPU memory, at one time."""
    return (report.get("memory") or {}).get("deviceUsed", 0)


def problems_of_tab(row):
    for path in ("local", "peer"):
        if not row[f"{path}_bytes"]:
            yield f"tab: tasks read nothing by {path}"
        # The live page was kept up to half a second before the end, and may lack the last report.
        if row[f"history_{path}_bytes"] != row[f"{path}_bytes"]:
            yield f"tab: {row[f'history_{path}_bytes']} bytes by {path}, tasks {row[f'{path}_bytes']}"
        if not row[f"live_{path}_bytes"]:
            yield f"tab: nothing by {path} while the application ran"
    yield from (
        f"tab: no {name}"
        for name in ("live_advice", "history_advice", "gpu_memory_bytes")
        if not row[name]
    )


def doctor(out, commit_file, folder):
    folder = pathlib.Path(folder)
    rows, problems = [], []
    for case in EXPECTED:
        file = folder / ("doctor-job.out" if case == "job" else f"doctor-{case}.json")
        found = examined(case, file)
        problems += problems_of(case, found)
        rows += found
    events = [json.loads(line) for line in next((folder / "tab-events").iterdir()).open()]
    row = tab(folder, events)
    problems += problems_of_tab(row)
    rows.append(row)
    (folder / "two-gpus.jsonl").write_text(log_of_tab(events))  # For src/test/resources/tab.
    write(out, measurement("gpu_doctor", commit_file, rows))
    show(rows)
    if problems:
        sys.exit("\n".join(problems))


def show(rows):
    for row in rows:
        if "gigabytesPerSecond" in row:
            print(
                f"{row['case']} {row['process']}: {row['path']} {row['from']} {row['to']}"
                f" {row['gigabytesPerSecond']} of {row['expected']} GB/s"
            )
        elif row.get("verdict") in ("warn", "fail"):
            print(
                f"{row['case']} {row['process']}: {row['verdict']} {row['check']}: {row['what'][:120]}"
            )
        elif "verdict" not in row:
            print(row)
