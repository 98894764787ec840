# shellcheck shell=bash disable=SC2154
# A standalone cluster with the RAPIDS Accelerator, and what is submitted to it.

# What all commands but pack need.
prepare() { # dir, kit, out
  dir="$(cd "$1" && pwd)"
  kit="$(cd "$2" && pwd)"
  mkdir -p "$3"
  out="$(cd "$3" && pwd)"
  export JAVA_HOME="$kit/jre17" SPARK_HOME="$kit/spark" SPARK_LOCAL_IP=127.0.0.1 SPARK_NO_DAEMONIZE=1
  local core
  core="$(basename "$SPARK_HOME"/jars/spark-core_*.jar .jar)" # spark-core_2.13-4.1.3
  spark_version="${core##*-}"
  export SPARK_SCALA_VERSION="${core:11:4}"
  export PATH="$JAVA_HOME/bin:$PATH"
  port="${PORT:-7077}"
  # A run by itself has what users have. Runs side by side may have applications of one id.
  socket_dir="$([ "$port" -eq 7077 ] || echo "/tmp/zerohop-$port")"
  export SPARK_LOCAL_DIRS="/dev/shm/zerohop-spark-local-$port"
  zerohop="$(echo "$dir"/zerohop-spark-*.jar)"
  tests="$(echo "$dir"/zerohop-benchmarks-spark-*.jar)"
  rapids="$kit/rapids.jar:$kit/native"
  gpus="${GPUS:-$([ -n "${SMOKE:-}" ] && echo 1 || nvidia-smi -L | wc -l)}"
  per_gpu="${PER_GPU:-1}"
  cores="${CORES:-8}"
  data="/dev/shm/zerohop-gpu-data-$port"
}

# A standalone master and a worker that offers all GPUs; both end with this script.
start_cluster() {
  cluster="/tmp/zerohop-cluster-$port"
  rm -rf "$cluster" "$SPARK_LOCAL_DIRS"
  mkdir -p "$cluster" "$SPARK_LOCAL_DIRS"
  printf '#!/bin/sh\necho %s\n' "'{\"name\":\"gpu\",\"addresses\":[\"$(seq -s '","' 0 $((gpus - 1)))\"]}'" > "$cluster/gpus"
  chmod +x "$cluster/gpus"
  # Applications of clusters that run side by side are told apart by their ids, but on Spark 3.5,
  # which has no such key: see socket_dir.
  java -Xmx1g @"$dir/java.options" -Dspark.deploy.appIdPattern="app-%s-%04d-$port" -cp "$SPARK_HOME/jars/*" org.apache.spark.deploy.master.Master \
    --host 127.0.0.1 --port "$port" --webui-port $((port + 1004)) > "$cluster/master.log" 2>&1 &
  master=$!
  java -Xmx1g @"$dir/java.options" -Dspark.worker.resource.gpu.amount="$gpus" \
    -Dspark.worker.resource.gpu.discoveryScript="$cluster/gpus" -cp "$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --port $((port + 1)) --webui-port $((port + 1005)) \
    -c $((cores * gpus * per_gpu)) -m 200g -d "$cluster/executors" "spark://127.0.0.1:$port" > "$cluster/worker.log" 2>&1 &
  worker=$!
  trap stop_cluster EXIT
  local i
  for i in $(seq 60); do
    ! grep -q 'Successfully registered with master' "$cluster/worker.log" || return 0
    sleep 0.5
  done
  echo "the cluster did not start:" >&2
  tail -n 5 "$cluster/master.log" "$cluster/worker.log" >&2
  return 1
}

stop_cluster() {
  trap - EXIT
  kill "$worker" "$master" 2> /dev/null || true
  wait "$worker" "$master" 2> /dev/null || true
  rm -rf "$SPARK_LOCAL_DIRS"
}

settings() { # contender, which may be followed by "+" and a variation, or several
  local variation
  [ -z "$socket_dir" ] || echo "--conf spark.zerohop.socket.dir=$socket_dir"
  echo "--conf spark.executor.cores=$cores --conf spark.executor.memory=16g
    --conf spark.executor.extraClassPath=$rapids:$zerohop"
  # Those that share a GPU do not ask Spark for one, and leave room for each other.
  if [ "$per_gpu" -gt 1 ]; then
    echo "--conf spark.rapids.memory.gpu.minAllocFraction=0.01
      --conf spark.rapids.memory.gpu.allocFraction=$(python3 -c "print(0.5 / $per_gpu / ${SHARE:-1})")"
    [ "${SHARE:-1}" -eq 1 ] || echo "--conf spark.zerohop.device.pool.size=3g"
  else
    echo "--conf spark.executor.resource.gpu.amount=1 --conf spark.task.resource.gpu.amount=0.01"
  fi
  case "${1%%+*}" in
    zerohop)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin
        --conf spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager"
      ;;
    sort)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.shuffle.compress=false"
      ;;
    multithreaded)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.shuffle.compress=false
        --conf spark.shuffle.manager=com.nvidia.spark.rapids.spark${spark_version//./}.RapidsShuffleManager
        --conf spark.rapids.shuffle.mode=MULTITHREADED"
      ;;
    ucx)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.rapids.shuffle.mode=UCX
        --conf spark.shuffle.manager=com.nvidia.spark.rapids.spark${spark_version//./}.RapidsShuffleManager
        --conf spark.executorEnv.LD_LIBRARY_PATH=$UCX/lib:${LD_LIBRARY_PATH:-}
        --conf spark.executorEnv.UCX_MODULE_DIR=$UCX/lib/ucx --conf spark.executorEnv.UCX_ERROR_SIGNALS=
        --conf spark.executorEnv.UCX_MEMTYPE_CACHE=n --conf spark.executorEnv.UCX_RNDV_SCHEME=put_zcopy
        --conf spark.executorEnv.UCX_MAX_RNDV_RAILS=1
        --conf spark.executorEnv.UCX_TLS=cuda_copy,cuda_ipc,tcp"
      ;;
    rows) # Without RAPIDS, so that scripts can be tried where there is no GPU.
      echo "--conf spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager" ;;
    *)
      echo "no contender '$1'; there are zerohop, sort, multithreaded, ucx and rows" >&2
      return 1
      ;;
  esac
  [[ "$1" != *+* ]] || for variation in $(tr + ' ' <<< "${1#*+}"); do vary "$variation" || return 1; done
}

vary() { # a variation of a contender
  case "$1" in
    nodes) as_nodes ;;
    # Executors of this host as if on other nodes, at defaults: neither files nor memory are shared.
    between)
      echo "--conf spark.zerohop.paths=local,sent,staged --conf spark.shuffle.readHostLocalDisk=false"
      ;;
    killed) ;; # By who submits it.
    arena) echo "--conf spark.rapids.memory.gpu.pool=ARENA" ;;
    compress) echo "--conf spark.shuffle.compress=true" ;;
    # RAPIDS wants a limit on host memory with it.
    skipmerge)
      echo "--conf spark.rapids.shuffle.multithreaded.skipMerge=true
        --conf spark.rapids.memory.host.offHeapLimit.enabled=true"
      ;;
    kudo)
      echo "--conf spark.rapids.shuffle.kudo.serializer.write.mode=GPU
        --conf spark.rapids.shuffle.kudo.serializer.read.mode=GPU"
      ;;
    async) echo "--conf spark.zerohop.device.asyncCommit=true" ;;
    packed) echo "--conf spark.zerohop.rapids.kudo.enabled=false" ;;
    # A tenth of the default of our pool, which is a fifth of the GPU, and little for RAPIDS.
    tight)
      echo "--conf spark.zerohop.device.pool.size=${TIGHT_POOL:-2800m} --conf spark.rapids.memory.gpu.minAllocFraction=0
        --conf spark.rapids.memory.gpu.allocFraction=${TIGHT:-0.06} --conf spark.rapids.memory.gpu.maxAllocFraction=${TIGHT:-0.06}"
      ;;
    *)
      echo "no variation '$1'; there are nodes, between, killed, arena, compress, skipmerge, kudo, packed, async and tight" >&2
      return 1
      ;;
  esac
}

# Where shuffles are looked at and tables are small enough to be broadcast. Not what users have:
# tpcds runs without it.
no_broadcasts="--conf spark.sql.autoBroadcastJoinThreshold=-1"

# Sums of hashes overflow, which is what they are for.
wrapping_sums="--conf spark.sql.ansi.enabled=false"

# For exchanges with all their partitions.
whole_exchanges="$no_broadcasts $wrapping_sums --conf spark.sql.adaptive.coalescePartitions.enabled=false"

# Submits one application to a cluster of its own; its logs stay in OUT.
submit() { # name, contender, more settings, class, arguments ...
  local name="$1" contender="$2" more="$3" class="$4" status=0 settings
  shift 4
  settings="$(settings "$contender")" || return 1
  start_cluster || {
    stop_cluster
    return 1
  }
  [[ "$contender" != *+killed* ]] || start_killing "$contender"
  # shellcheck disable=SC2086 # These are several words.
  timeout -k 5 "${LIMIT:-150}" java -Xmx4g @"$dir/java.options" -cp "$rapids:$zerohop:$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.SparkSubmit --master "spark://127.0.0.1:$port" $settings $more ${MORE:-} \
    --class "$class" "$tests" "$@" > "$out/$name.out" 2> "$out/$name.err" || status=$?
  stop_killing
  stop_cluster
  cat "$cluster"/executors/*/*/stderr > "$out/$name.executors.err" 2> /dev/null || true
  # Right rows even so, but by the slower way.
  if grep -h 'in a way that Zerohop does not know' "$out/$name.executors.err" >&2; then status=1; fi
  if [ "$status" -ne 0 ]; then
    echo "$name ended with status $status:" >&2
    grep -hE "ERROR|Exception|Caused" "$out/$name.err" "$out/$name.executors.err" | cut -c1-250 | awk '!seen[$0]++' | head -8 >&2
  fi
  return "$status"
}

# A folder in which everything lies where the build would have put it.
lay_out() {
  project="$(mktemp -d)"
  built="$project/benchmarks/spark/target"
  mkdir -p "$built/spark-home/conf" "$built/application-jars" "$project/plugin/target" "$project/run"
  ln -s "$SPARK_HOME/jars" "$SPARK_HOME/RELEASE" "$built/spark-home/"
  ln -s "$tests" "$built/"
  ln -s "$dir"/application-jars/*.jar "$built/application-jars/"
  ln -s "$zerohop" "$project/plugin/target/"
}
