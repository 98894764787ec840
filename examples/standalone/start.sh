#!/usr/bin/env bash
# Starts a master and one worker of Spark standalone on this machine, in the foreground: start.sh
# Both end with it. Variables:
#   SPARK_HOME    Spark 3.5 to 4.2
#   MASTER_HOST   address of the master (127.0.0.1)
#   MASTER_PORT   its port (7077)
#   CORES MEMORY  what the worker offers (2, 2g)
#   WORK          a writable folder for executors' logs and jars ($SPARK_HOME/work if it is writable,
#                 else ./work)
set -euo pipefail
: "${SPARK_HOME:?is the folder of a Spark distribution}"
host="${MASTER_HOST:-127.0.0.1}"
port="${MASTER_PORT:-7077}"
work="${WORK:-$SPARK_HOME/work}"
if [ -z "${WORK:-}" ] && ! { mkdir -p "$work" && [ -w "$work" ]; } 2> /dev/null; then
  work="$PWD/work"
fi
export SPARK_LOCAL_IP="$host"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap exit INT TERM HUP

"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master \
  --host "$host" --port "$port" --webui-port 0 &
"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker \
  --host "$host" --webui-port 0 --cores "${CORES:-2}" --memory "${MEMORY:-2g}" --work-dir "$work" \
  "spark://$host:$port" &
wait -n
