#!/usr/bin/env python3
"""Where the time of an application goes: seconds by operator, and what is not an operator's.

Usage: operators.py EVENT_LOG...

Reads Spark's event logs (not compressed, not rolling) and adds up, over all tasks of the queries in
them: the time of each operator of the plan by its own metrics, what a task does beside them, waits
for blocks, and what Spark's scheduler takes. One line of JSON a log, and a table for people on
standard error.

An operator's time is its metric "op time" where it has one, as RAPIDS' operators have, and otherwise
the largest of its metrics of time: those of one operator may contain each other. Operators that one
task runs at the same time, on other threads, can add up to more than its run time.
"""

import collections
import json
import sys

SECONDS = {"timing": 1e-3, "nsTiming": 1e-9}
SQL = "org.apache.spark.sql.execution.ui."
PLANS = (SQL + "SparkListenerSQLExecutionStart", SQL + "SparkListenerSQLAdaptiveExecutionUpdate")


def metrics_of(plan, found):
    """Notes each accumulator of a plan: its operator's name, the metric's, and seconds a unit."""
    for metric in plan["metrics"]:
        factor = SECONDS.get(metric["metricType"])
        if factor:
            found[metric["accumulatorId"]] = (plan["nodeName"], metric["name"], factor)
    for child in plan["children"]:
        metrics_of(child, found)


class Application:
    def __init__(self):
        self.metrics = {}
        self.values = collections.Counter()
        self.tasks = collections.Counter()

    def read(self, log):
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                self.event(json.loads(line))
        return self

    def event(self, event):
        kind = event["Event"]
        if kind in PLANS:
            metrics_of(event["sparkPlanInfo"], self.metrics)
        elif kind == SQL + "SparkListenerDriverAccumUpdates":
            for accumulator, value in event["accumUpdates"]:
                self.values[accumulator] += value
        elif kind == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            self.task(event["Task Info"], event["Task Metrics"])

    def task(self, info, metrics):
        for update in info["Accumulables"]:
            if isinstance(update.get("Update"), (int, str)) and str(update["Update"]).isdigit():
                self.values[update["ID"]] += int(update["Update"])
        run = metrics["Executor Run Time"] / 1e3
        own = metrics["Executor Deserialize Time"] + metrics["Result Serialization Time"]
        whole = (info["Finish Time"] - info["Launch Time"]) / 1e3
        self.tasks["tasks"] += 1
        self.tasks["run"] += run
        self.tasks["start and result"] += own / 1e3
        self.tasks["scheduler"] += max(0, whole - run - own / 1e3)
        self.tasks["garbage collection"] += metrics["JVM GC Time"] / 1e3
        self.tasks["wait for blocks"] += metrics["Shuffle Read Metrics"]["Fetch Wait Time"] / 1e3
        self.tasks["shuffle write"] += metrics["Shuffle Write Metrics"]["Shuffle Write Time"] / 1e9

    def operators(self):
        """Seconds by operator."""
        by_metric = collections.defaultdict(collections.Counter)
        for accumulator, value in self.values.items():
            if accumulator in self.metrics:
                node, name, factor = self.metrics[accumulator]
                by_metric[node][name] += value * factor
        return {
            node: names.get("op time", max(names.values())) for node, names in by_metric.items()
        }


def main(logs):
    if not logs:
        sys.exit(__doc__)
    for log in logs:
        application = Application().read(log)
        operators = dict(sorted(application.operators().items(), key=lambda item: -item[1]))
        tasks = {name: round(value, 3) for name, value in application.tasks.items()}
        print(
            json.dumps(
                {
                    "log": log.rsplit("/", 1)[-1],
                    "tasks": tasks,
                    "operators": {node: round(value, 3) for node, value in operators.items()},
                }
            )
        )
        for name, value in list(tasks.items()) + list(operators.items()):
            print(f"{value:12.3f}  {name}", file=sys.stderr)


main(sys.argv[1:])
