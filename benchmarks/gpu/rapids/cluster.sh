# shellcheck shell=bash disable=SC2154
# A standalone cluster with the RAPIDS Accelerator, and what is submitted to it.

# What masters and workers have of an application's encryption.
secret=()

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

# A standalone master and a worker that offers all GPUs; both end with this script. With a link
# (25 Gb/s, or "" for all that it carries) two workers, each in a network namespace of its own with
# half of the executors; they share nothing else than the host's memory and GPUs. With isolated set
# a worker for each GPU, whose processes see that one alone, as in containers; with workers set one
# that sees all, and FIRST are options of the Java virtual machines of the first one's executors.
start_cluster() { # link
  nodes=()        # Their addresses.
  cluster="/tmp/zerohop-cluster-$port"
  rm -rf "$cluster" "$SPARK_LOCAL_DIRS"
  mkdir -p "$cluster" "$SPARK_LOCAL_DIRS"
  trap stop_cluster EXIT
  [ $# -eq 0 ] || join_nodes "$1" || return 1
  local host="${nodes[0]:-127.0.0.1}" count="${#nodes[@]}" i
  [ -z "${isolated:-}${workers:-}" ] || count="$gpus"
  # Applications of clusters that run side by side are told apart by their ids, but on Spark 3.5,
  # which has no such key: see socket_dir.
  on_node 0 java -Xmx1g @"$dir/java.options" "${secret[@]}" -Dspark.deploy.appIdPattern="app-%s-%04d-$port" -cp "$SPARK_HOME/jars/*" org.apache.spark.deploy.master.Master \
    --host "$host" --port "$port" --webui-port $((port + 1004)) > "$cluster/master.log" 2>&1 &
  servers=($!)
  master_url="spark://$host:$port"
  [ "$count" -gt 0 ] || count=1
  for ((i = 0; i < count; i++)); do start_worker "$i" "$count"; done
  worker="${servers[1]}"
  for i in $(seq 60); do
    [ "$(grep -ls 'Successfully registered with master' "$cluster"/worker-*.log | wc -l)" -lt "$count" ] || return 0
    sleep 0.5
  done
  echo "the cluster did not start:" >&2
  tail -n 5 "$cluster"/*.log >&2
  return 1
}

start_worker() { # number, of how many
  local host="${nodes[$1]:-127.0.0.1}" mine first=0
  mine="$gpus"
  # Nodes have GPUs of their own where there are enough.
  if [ "$gpus" -ge "$2" ]; then
    mine=$((gpus / $2))
    first=$((mine * $1))
  fi
  if [ -n "${isolated:-}" ]; then
    export CUDA_VISIBLE_DEVICES="$1"
    first=0
  fi
  [ -z "${FIRST:-}" ] || [ "$1" -ne 0 ] || export JAVA_TOOL_OPTIONS="$FIRST"
  printf '#!/bin/sh\necho %s\n' "'{\"name\":\"gpu\",\"addresses\":[\"$(seq -s '","' "$first" $((first + mine - 1)))\"]}'" > "$cluster/gpus-$1"
  chmod +x "$cluster/gpus-$1"
  on_node "$1" java -Xmx1g @"$dir/java.options" "${secret[@]}" -Dspark.worker.resource.gpu.amount="$mine" \
    -Dspark.worker.resource.gpu.discoveryScript="$cluster/gpus-$1" -cp "$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.worker.Worker --host "$host" --port $((port + 1 + 10 * $1)) --webui-port $((port + 1005 + 10 * $1)) \
    -c $((cores * gpus * per_gpu / $2)) -m 200g -d "$cluster/executors/$1" "$master_url" > "$cluster/worker-$1.log" 2>&1 &
  servers+=($!)
  unset JAVA_TOOL_OPTIONS
}

# Runs a command where a node is, if there are any; the process is the command itself.
on_node() { # number, command ...
  local host="${nodes[$1]:-}" node="zerohop-$port-$1"
  shift
  if [ -z "$host" ]; then
    exec "$@"
  fi
  SPARK_LOCAL_IP="$host" exec ip netns exec "$node" "$@"
}

# Two namespaces and a link between them that carries so much in each direction.
join_nodes() { # Gb/s, or nothing
  local i
  split_nodes
  for i in 0 1; do ip netns add "zerohop-$port-$i" || return 1; done
  ip -n "zerohop-$port-0" link add link0 type veth peer name link0 netns "zerohop-$port-1" || return 1
  for i in 0 1; do
    ip -n "zerohop-$port-$i" addr add "10.202.0.$((i + 1))/24" dev link0
    ip -n "zerohop-$port-$i" link set lo up
    ip -n "zerohop-$port-$i" link set link0 up
    [ -z "$1" ] || ip netns exec "zerohop-$port-$i" \
      tc qdisc add dev link0 root tbf rate "${1}gbit" burst 4mb latency 50ms || return 1
    nodes+=("10.202.0.$((i + 1))")
  done
}

split_nodes() {
  local i
  for i in 0 1; do ip netns del "zerohop-$port-$i" 2> /dev/null || true; done
}

stop_cluster() {
  trap - EXIT
  kill "${servers[@]}" 2> /dev/null || true
  wait "${servers[@]}" 2> /dev/null || true
  [ "${#nodes[@]}" -eq 0 ] || split_nodes
  rm -rf "$SPARK_LOCAL_DIRS"
}

jar_of() { # contender
  if [[ "$1" == *+before* ]]; then echo "${BEFORE:?is to name the jar of the tree before}"; else echo "$zerohop"; fi
}

settings() { # contender, which may be followed by "+" and a variation, or several
  local variation jar
  jar="$(jar_of "$1")"
  [ -z "$socket_dir" ] || echo "--conf spark.zerohop.socket.dir=$socket_dir"
  echo "--conf spark.executor.cores=$cores --conf spark.executor.memory=16g
    --conf spark.executor.extraClassPath=$rapids:$jar"
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
    killed | isolated | workers | link* | before) ;; # By who submits it.
    nopeers)
      cc -shared -fPIC -O2 -o "$out/libno_peers.so" "$dir/rapids/no_peers.c" -ldl || return 1
      echo "--conf spark.executorEnv.LD_PRELOAD=$out/libno_peers.so"
      ;;
    crypto)
      echo "--conf spark.authenticate=true --conf spark.authenticate.secret=of-a-benchmark
        --conf spark.network.crypto.enabled=true"
      ;;
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
    keeper) echo "--conf spark.zerohop.keeper=true" ;;
    # As many reduce tasks as Spark makes.
    many) vary size0 ;;
    # Reduce tasks of another size than our default, such as +size64m.
    size*) echo "--conf spark.zerohop.rapids.coalesce.size=${1#size}" ;;
    # Tasks of a union read one of its branches each, as before Spark 4.1.
    apart) echo "--conf spark.sql.unionOutputPartitioning=false" ;;
    # Few reduce tasks of a size for GPUs, in all stages.
    fat)
      echo "--conf spark.sql.adaptive.coalescePartitions.parallelismFirst=false
        --conf spark.sql.adaptive.advisoryPartitionSizeInBytes=${FAT:-256m}"
      ;;
    sync) echo "--conf spark.zerohop.device.asyncCommit=false" ;;
    unsummed) echo "--conf spark.zerohop.checksum.enabled=false" ;;
    packed) echo "--conf spark.zerohop.rapids.kudo.enabled=false" ;;
    # A tenth of the default of our pool, which is a fifth of the GPU, and little for RAPIDS.
    tight)
      echo "--conf spark.zerohop.device.pool.size=${TIGHT_POOL:-2800m} --conf spark.rapids.memory.gpu.minAllocFraction=0
        --conf spark.rapids.memory.gpu.allocFraction=${TIGHT:-0.06} --conf spark.rapids.memory.gpu.maxAllocFraction=${TIGHT:-0.06}"
      ;;
    *)
      echo "no variation '$1'; there are nodes, between, crypto, link, isolated, workers, nopeers, killed, before, keeper, many, sizeN, apart, fat, arena, compress, skipmerge, kudo, packed, sync, unsummed and tight" >&2
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
  local name="$1" contender="$2" more="$3" class="$4" status=0 settings link=() secret=() isolated='' workers=''
  shift 4
  settings="$(settings "$contender")" || return 1
  if [[ "$contender" =~ \+link([0-9]*) ]]; then link=("${BASH_REMATCH[1]}"); fi
  [[ "$contender" != *+isolated* ]] || isolated=1
  [[ "$contender" != *+workers* ]] || workers=1
  # Masters and workers of a standalone cluster have the application's.
  [[ "$contender" != *+crypto* ]] ||
    secret=(-Dspark.authenticate=true -Dspark.authenticate.secret=of-a-benchmark -Dspark.network.crypto.enabled=true)
  start_cluster "${link[@]}" || {
    stop_cluster
    return 1
  }
  [[ "$contender" != *+killed* ]] || start_killing "$contender"
  if [ -n "${EVENTS:-}" ]; then
    mkdir -p "$out/events"
    more="$more --conf spark.eventLog.enabled=true --conf spark.eventLog.dir=file:$out/events
      --conf spark.eventLog.compress=false --conf spark.eventLog.rolling.enabled=false"
  fi
  # shellcheck disable=SC2086 # These are several words.
  (on_node 0 timeout -k 5 "${LIMIT:-150}" java -Xmx4g @"$dir/java.options" -cp "$rapids:$(jar_of "$contender"):$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.SparkSubmit --master "$master_url" $settings $more ${MORE:-} \
    --class "$class" "$tests" "$@") > "$out/$name.out" 2> "$out/$name.err" || status=$?
  stop_killing
  stop_cluster
  unset CUDA_VISIBLE_DEVICES
  cat "$cluster"/executors/*/*/*/stderr > "$out/$name.executors.err" 2> /dev/null || true
  # Right rows even so, but by the slower way.
  if grep -h 'ZH-5056' "$out/$name.executors.err" >&2; then status=1; fi
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
