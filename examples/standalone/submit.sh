#!/usr/bin/env bash
# Submits an application to a standalone cluster: submit.sh SPARK_SUBMIT_ARGUMENT...
#   SPARK_HOME    Spark 3.5 to 4.2
#   ZEROHOP_JAR   zerohop-spark-<version>.jar; at this path on every machine
#   MASTER        spark://HOST:PORT
set -euo pipefail
: "${SPARK_HOME:?is the folder of a Spark distribution}"
: "${ZEROHOP_JAR:?is the path of zerohop-spark-VERSION.jar, the same on every machine}"
: "${MASTER:?is the URL of the master, spark://HOST:PORT}"
[ -f "$ZEROHOP_JAR" ] || {
  echo "submit.sh: $ZEROHOP_JAR (ZEROHOP_JAR) is not there" >&2
  exit 2
}
# start.sh opens the master's port after some seconds; Spark itself would retry only after 20 s.
if [[ "$MASTER" =~ ^spark://([^,:]+):([0-9]+)$ ]]; then
  end=$((SECONDS + 30))
  # shellcheck disable=SC2016 # They are the inner shell's.
  until timeout 2 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "${BASH_REMATCH[@]:1}" 2> /dev/null; do
    [ "$SECONDS" -lt "$end" ] || break
    sleep 1
  done
fi
# As arguments: these override spark-defaults.conf, and the arguments of the caller override these.
settings=()
while IFS=$' \t=:\r' read -r key value; do
  [[ "$key" != spark.* ]] || settings+=(--conf "$key=$value")
done < "$(dirname "$0")/zerohop.conf"
exec "$SPARK_HOME/bin/spark-submit" --master "$MASTER" "${settings[@]}" \
  --conf "spark.driver.extraClassPath=$ZEROHOP_JAR" \
  --conf "spark.executor.extraClassPath=$ZEROHOP_JAR" "$@"
