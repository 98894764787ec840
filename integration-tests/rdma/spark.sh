# shellcheck shell=bash
# Spark's standalone cluster on two machines, as jobs of theirs start it.
. /pack/verbs.sh
: "${verbs:?}" # of verbs.sh
export SPARK_HOME=/tmp/spark SPARK_LOCAL_HOSTNAME="machine-$MACHINE" SPARK_SCALA_VERSION=2.13
export SPARK_WORKER_DIR=/host/work SPARK_LOCAL_DIRS=/tmp/local
quick="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djdk.reflect.useDirectMethodHandle=false"
opens="$(for package in lang lang.invoke lang.reflect io net nio util util.concurrent util.concurrent.atomic; do
  printf ' --add-opens=java.base/java.%s=ALL-UNNAMED' "$package"
done) --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED"
classes="/pack/zerohop.jar:/pack/spark-tests:/pack/spark-lib/*"
mkdir -p "$SPARK_HOME" "$SPARK_LOCAL_DIRS" "$SPARK_WORKER_DIR"
ln -sfn /pack/spark-home/jars "$SPARK_HOME/jars"
cp -r /pack/spark-home/conf /pack/spark-home/RELEASE "$SPARK_HOME/"

# daemon CLASS ARGUMENT ...: stays until the machine ends
daemon() {
  # shellcheck disable=SC2086 # These are several words.
  java -Xmx200m $quick $opens -cp "$SPARK_HOME/conf:$SPARK_HOME/jars/*" "$@" \
    >> "/host/${1##*.}.log" 2>&1 &
}

# cluster: the first machine's part of it, or the second's once that is there
cluster() {
  if [ "$MACHINE" = 1 ]; then
    daemon org.apache.spark.deploy.master.Master --host machine-1 --port 7077 --webui-port 0
  else
    until (exec 3<> /dev/tcp/machine-1/7077) 2> /dev/null; do sleep 0.5; done
  fi
  daemon org.apache.spark.deploy.worker.Worker --webui-port 0 --cores 1 --memory 700m spark://machine-1:7077
}

# application SCENARIO ...: Spark's and Zerohop's defaults, but for what the machines are too slow or
# too small for
application() {
  local word environment=("-Dspark.executorEnv.LD_LIBRARY_PATH=$LD_LIBRARY_PATH")
  for word in $verbs; do environment+=("-Dspark.executorEnv.$word"); done
  # shellcheck disable=SC2086 # These are several words.
  timeout 1200 java -Xmx500m $quick $opens -cp "$classes:$SPARK_HOME/conf:$SPARK_HOME/jars/*" \
    -Dspark.master=spark://machine-1:7077 -Dspark.executor.memory=700m -Dspark.cores.max=2 \
    -Dspark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager \
    -Dspark.zerohop.ucx.trustedNetwork=true \
    -Dspark.zerohop.pool.size=256m -Dspark.ui.enabled=false -Dspark.port.maxRetries=4 \
    -Dspark.executor.heartbeatInterval=5s -Dspark.network.timeout=60s \
    -Dzerohop.test.target=/host "-Dspark.executor.extraClassPath=$classes" \
    "-Dspark.executor.extraJavaOptions=$quick -Dzerohop.test.target=/host" "${environment[@]}" \
    io.zerohop.spark.rdma.RdmaApplication /host/scenarios.jsonl machine-2 "$CARD" "$@" \
    > "/host/application.log" 2>&1
}
