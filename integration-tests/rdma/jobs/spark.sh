# shellcheck shell=bash
# Two executors of Spark, one on each machine, that read each other by verbs: rows, and faults.
. /pack/spark.sh
cluster
failed=0
application auto rows lossy down-and-up killed-before killed-during killed-after || failed=1
application message rows killed-during || failed=1
exit "$failed"
