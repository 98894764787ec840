#!/usr/bin/env python3
"""Runs PySpark jobs with Zerohop and with sort shuffle, and compares what they return.

    python3 check.py ZEROHOP_JAR        # with pyspark on Python's path, and SPARK_HOME

Each shuffle manager has an application of its own: a driver and two executors on this machine.
Beside plain jobs it tries what only Python does: a reader that stops early (take), a function
that raises, a worker that ends in the middle of a block, and an executor that is killed by its
worker. Ends with 0 if both applications returned the same.
"""

import hashlib
import operator
import os
import signal
import subprocess
import sys
import tempfile

RECORDS = 400_000


def digest(values):
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()[:16]


def rows(frame):
    return digest(sorted(frame.collect(), key=str))


def frames(spark):
    from pyspark.sql import functions
    from pyspark.sql.types import LongType

    left = spark.range(0, RECORDS, 1, 8).selectExpr(
        "id", "id % 1000 as k", "cast(id * 7 % 13 as string) as s"
    )
    right = spark.range(0, 1000, 1, 4).selectExpr("id as k", "concat('name', id) as name")
    twice = functions.udf(lambda x: x * 2 + 1, LongType())
    yield "group by", rows(left.groupBy("k", "s").agg(functions.sum("id")))
    joined = left.join(right, "k").groupBy("name").agg(functions.max("id"))
    yield "join", rows(joined)
    yield "join that shuffles", rows(
        left.join(right.hint("shuffle_hash"), "k").groupBy("name").agg(functions.max("id"))
    )
    yield "order by", digest(left.orderBy(functions.desc("s"), "id").limit(5000).collect())
    moved = left.repartition(16, "k").select(twice("id").alias("x"))
    yield "function over a shuffle", rows(moved.groupBy(functions.expr("x % 97")).count())
    yield "function and limit", len(moved.limit(10).collect())


def rdds(context):
    words = context.parallelize([(f"w{i % 503}", i) for i in range(100_000)], 8)
    large = context.parallelize([(i % 11, bytes([i % 251]) * 20_000) for i in range(2000)], 6)
    yield "reduceByKey", digest(sorted(words.reduceByKey(operator.add, 6).collect()))
    yield "sortByKey", digest(words.sortByKey(numPartitions=7).keys().collect())
    grouped = words.cogroup(words.mapValues(str), 4)
    yield "cogroup", digest(sorted((k, len(a), len(b)) for k, (a, b) in grouped.collect()))
    sizes = large.groupByKey(4).mapValues(lambda values: sum(len(v) + v[0] for v in values))
    yield "large values", digest(sorted(sizes.collect()))
    yield "repartition", context.parallelize(range(50_000), 3).repartition(9).sum()


def once(folder, name):
    """Returns whether this is the first call with that name in any process."""
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def interruptions(context, folder):
    def raises(records):
        next(records)
        raise ValueError("on purpose")

    def dies(records):
        next(records)
        if once(folder, "worker"):
            os._exit(3)
        yield 1 + sum(1 for _ in records)

    def kills(partition, records):
        for n, _ in enumerate(records):
            if partition == 3 and n == 1000 and once(folder, "executor"):
                # A worker's parent is the daemon of workers, and the daemon's the executor.
                with open(f"/proc/{os.getppid()}/stat") as stat:
                    executor = int(stat.read().rpartition(")")[2].split()[1])
                os.kill(executor, signal.SIGKILL)
            yield 1

    pairs = context.parallelize(range(RECORDS), 8).map(lambda i: (i % 5003, "x" * 100 + str(i)))
    moved = pairs.partitionBy(6)
    yield "take", [len(moved.take(3)) for _ in range(5)]
    yield "first of each", moved.mapPartitions(lambda records: [len(next(records))]).collect()
    try:
        moved.mapPartitions(raises).collect()
    except Exception as failure:
        yield "a function that raises", "on purpose" in str(failure)
    yield "a worker that dies", sum(moved.mapPartitions(dies).collect())
    yield "an executor that is killed", sum(moved.mapPartitionsWithIndex(kills).collect())
    yield "afterwards", moved.reduceByKey(max).keys().sum()


def application(jar, folder):
    """One application. With a jar it must use Zerohop."""
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("pyspark-check")
    if jar:
        for end in ("driver", "executor"):
            builder = builder.config(f"spark.{end}.extraClassPath", jar)
        builder = builder.config("spark.plugins", "io.zerohop.spark.ZerohopPlugin")
        if pyspark.__version__ < "4":
            builder = builder.config(
                "spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager"
            )
    for session in ("first", "second"):
        spark = builder.getOrCreate()
        context = spark.sparkContext
        manager = context._jvm.org.apache.spark.SparkEnv.get().shuffleManager().toString()
        if jar and "zerohop" not in manager:
            sys.exit(f"not Zerohop: {manager}")
        for name, value in frames(spark):
            print(f"RESULT {session} session, {name}: {value}", flush=True)
        for name, value in rdds(context):
            print(f"RESULT {session} session, {name}: {value}", flush=True)
        if session == "first":
            for name, value in interruptions(context, folder):
                print(f"RESULT {name}: {value}", flush=True)
        spark.stop()


def results(jar):
    """Runs one application in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.abspath(__file__), "--application", jar, folder]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1800, check=True)
    return [line for line in run.stdout.splitlines() if line.startswith("RESULT")]


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--application":
        application(sys.argv[2], sys.argv[3])
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    jar = os.path.abspath(sys.argv[1])
    if not os.path.exists(jar):
        sys.exit(f"no such jar: {jar}")
    expected, found = results(""), results(jar)
    wrong = [f"{a}\n  with Zerohop {b}" for a, b in zip(expected, found) if a != b]
    print("\n".join(wrong + found))
    if wrong or len(expected) != len(found):
        sys.exit(f"{len(wrong)} results differ, {len(expected)} and {len(found)} results")
    print(f"{len(found)} results are equal")


if __name__ == "__main__":
    main()
