#!/usr/bin/env python3
"""What a shuffle's own work is of the processor time of executors, beside all else they do.

Usage, for two systems whose queries alternate:
  mkdir -p STACKS
  benchmarks/scripts/run.sh tpcds --iterations 2 --queries ... --out RUN.json --conf \
    spark.executor.extraJavaOptions=-agentpath:LIBRARY=start,event=cpu,interval=5ms,collapsed,file=STACKS/%p.collapsed
  benchmarks/scripts/processor.py RUN.json STACKS > docs/measurements/host_processor.json

LIBRARY is libasyncProfiler.so of async-profiler 4 (Apache-2.0; tools.profiler:async-profiler on Maven
Central). STACKS has a file for each executor, with a line for each stack and how often it was seen.

A sample belongs to the compiler, to the virtual machine (mostly garbage collection), to the shuffle, to
Netty's and Spark's threads for messages, or to other work, mostly of tasks. It is the shuffle's if its
stack has a frame of a writer, reader, serializer or codec that no frame of an operator follows: what a
writer's iterator computes is not the shuffle's.
"""

import collections
import json
import re
import sys
from pathlib import Path

from measurements import text

# Its value has a path of this machine.
AGENT = "spark.executor.extraJavaOptions"
SECONDS_A_SAMPLE = 0.005
COMPILER = re.compile(r"CompileBroker|C2Compiler|Compiler::compile_method")
MACHINE = re.compile(r"WorkerThread|GangWorker|VMThread|G1Service|ConcurrentG1|VM_Operation")
MESSAGES = re.compile(r"io/netty/util/concurrent/FastThreadLocalRunnable|spark/rpc/netty")
SHUFFLE = re.compile(
    r"io/zerohop/|apache/spark/shuffle/|ShuffleBlockFetcherIterator|UnsafeRowSerializer|"
    r"ShuffleExternalSorter|DiskBlockObjectWriter|net/jpountz|apache/spark/io/"
)
OPERATOR = re.compile(
    r"GeneratedClass|BufferedRowIterator|/execution/aggregate/|/execution/datasources/|"
    r"/execution/joins/|/execution/window/|/parquet/|UnsafeExternalRowSorter"
)


def last(pattern, frames):
    return max((i for i, frame in enumerate(frames) if pattern.search(frame)), default=-1)


def part(stack):
    if COMPILER.search(stack):
        return "compiler"
    if MACHINE.search(stack):
        return "virtual machine"
    frames = stack.split(";")
    # The processor that Zerohop's own threads take is the shuffle's too.
    if last(SHUFFLE, frames) > last(OPERATOR, frames):
        return "shuffle"
    return "messages" if MESSAGES.search(stack) else "other work"


def executor(file):
    """Which system's executor it was, and its seconds by part."""
    seconds = collections.Counter()
    zerohop = False
    with open(file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stack, samples = line.rsplit(" ", 1)
            zerohop |= "io/zerohop/spark/rows/" in stack
            seconds[part(stack)] += int(samples) * SECONDS_A_SAMPLE
    return "zerohop" if zerohop else "sort", seconds


def main(run_file, stacks):
    run = json.loads(Path(run_file).read_text())
    found = collections.defaultdict(collections.Counter)
    for file in sorted(Path(stacks).glob("*.collapsed")):
        case, seconds = executor(file)
        found[case] += seconds
    rows = [
        {"case": case, "part": name, "seconds": round(value, 3)}
        for case, seconds in sorted(found.items(), reverse=True)
        for name, value in seconds.most_common()
    ]
    conf = {key: value for key, value in run["setting"]["conf"].items() if key != AGENT}
    queries = len({row["query"] for row in run["rows"]})
    setting = run["setting"] | {"conf": conf, "queries": queries}
    head = {name: run[name] for name in ("commit", "date", "host")}
    sys.stdout.write(text({"bench": "host_processor"} | head | {"setting": setting, "rows": rows}))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
