# shellcheck shell=bash
# Two executors of Spark, one on each machine, that read each other by verbs: rows, and faults.
. /pack/spark.sh
cluster
application rows lossy down-and-up killed-before killed-during killed-after
