#!/usr/bin/env bash
# Submits an application to YARN in client mode: submit.sh SPARK_SUBMIT_ARGUMENT...
#   SPARK_HOME        Spark 3.5 to 4.2 with its YARN support
#   HADOOP_CONF_DIR   the folder of yarn-site.xml
#   ZEROHOP_JAR       zerohop-spark-<version>.jar; at this path on every node
set -euo pipefail
: "${SPARK_HOME:?is the folder of a Spark distribution}"
: "${HADOOP_CONF_DIR:?is the folder of yarn-site.xml}"
: "${ZEROHOP_JAR:?is the path of zerohop-spark-VERSION.jar, the same on every node}"
[ -f "$ZEROHOP_JAR" ] || {
  echo "submit.sh: $ZEROHOP_JAR (ZEROHOP_JAR) is not there" >&2
  exit 2
}
# As arguments: these override spark-defaults.conf, and the arguments of the caller override these.
settings=()
while IFS=$' \t=:\r' read -r key value; do
  [[ "$key" != spark.* ]] || settings+=(--conf "$key=$value")
done < "$(dirname "$0")/zerohop.conf"
exec "$SPARK_HOME/bin/spark-submit" --master yarn --deploy-mode client "${settings[@]}" \
  --conf "spark.driver.extraClassPath=$ZEROHOP_JAR" \
  --conf "spark.executor.extraClassPath=$ZEROHOP_JAR" "$@"
