# shellcheck shell=bash
# The proof kit between two machines: all of it but that an adapter made by software proves nothing.
. /pack/proof.sh
: "${environment:?}" "${quick:?}" # of spark.sh
cluster
until (exec 3<> /dev/tcp/machine-2/7373) 2> /dev/null; do sleep 1; done
settings=()
for setting in "${environment[@]}" spark.executor.memory=700m spark.cores.max=2 spark.ui.enabled=false \
  spark.zerohop.pool.size=256m "spark.executor.extraJavaOptions=$quick"; do
  settings+=(--conf "${setting#-D}")
done
status=0
proof machine-2 --mib 32 --kills 3 --rows 200000 --spark "$SPARK_HOME" --master spark://machine-1:7077 \
  "${settings[@]}" > /host/proof.json || status=$?
# 1 is "not proven". Each finding stands behind a brace.
[ "$status" = 1 ] && ! tr '{' '\n' < /host/proof.json | grep '"result":"failed"' | grep -v '"check":"adapter"'
