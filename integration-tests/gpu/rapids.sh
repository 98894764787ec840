#!/usr/bin/env bash
# Runs Spark with the RAPIDS Accelerator on a GPU host, its shuffles through Zerohop.
#
#   rapids.sh pack DIR             collects our jars into DIR (3 MiB); needs the built tree
#   rapids.sh check DIR KIT OUT    queries of every kind, every row compared with the CPU's
#   rapids.sh paths DIR KIT OUT    some of them with each path forced, and with pools that are full
#   rapids.sh bench DIR KIT OUT    exchanges timed, beside file-based shuffles
#   rapids.sh demo DIR KIT OUT     a short one of these, shown as a table and a plot
#   rapids.sh rows DIR KIT OUT     the demo's queries without RAPIDS, their rows in GPU memory
#   rapids.sh checksums DIR KIT OUT  row checksums: who runs again when an executor is lost (needs two
#                                  GPUs), and what they cost
#
# KIT is a folder with jre17 (a Java run time), spark (jars/ and RELEASE of Spark 4.1.3), rapids.jar
# (RAPIDS Accelerator 26.08.1 for CUDA 13) and native (amd64/Linux/libcudf.so). Each GPU gets one
# executor. CORES is how many tasks an executor runs at a time (8), LIMIT how many seconds one
# application may take (150), MORE is added to spark-submit's arguments. bench knows CONTENDERS
# (zerohop sort multithreaded, or ucx if UCX is the folder of a UCX with CUDA; "zerohop+arena" uses
# RAPIDS' ARENA pool), ROUNDS (5), MILLIONS of rows (80) and QUERIES, each of which is
# partitions:query,query:rounds:millions; checksums knows the last three, and TURNS (2).
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
usage() { sed -n '2,22s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }

pack() {
  local out="$1" root
  root="$(cd "$here/../.." && pwd)"
  mkdir -p "$out"
  rm -f "$out"/*
  cp "$root"/plugin/target/zerohop-spark-*.jar "$root"/integration-tests/target/zerohop-integration-tests-*.jar \
    "$root"/integration-tests/target/application-jars/*.jar "$here/rapids.sh" "$here/rapids_rows.py" \
    "$root/integration-tests/bench/plot.py" "$out/"
  git -C "$root" rev-parse HEAD > "$out/commit"
  [ -z "$(git -C "$root" status --porcelain --untracked-files=no)" ] || sed -i 's/$/-dirty/' "$out/commit"
}

# What all commands but pack need.
prepare() { # dir, kit, out
  dir="$(cd "$1" && pwd)"; kit="$(cd "$2" && pwd)"; mkdir -p "$3"; out="$(cd "$3" && pwd)"
  export JAVA_HOME="$kit/jre17" SPARK_HOME="$kit/spark" SPARK_SCALA_VERSION=2.13 SPARK_LOCAL_IP=127.0.0.1 SPARK_NO_DAEMONIZE=1
  export PATH="$JAVA_HOME/bin:$PATH"
  export SPARK_LOCAL_DIRS=/dev/shm/zerohop-spark-local
  zerohop="$(echo "$dir"/zerohop-spark-*.jar)"
  tests="$(echo "$dir"/zerohop-integration-tests-*.jar)"
  rapids="$kit/rapids.jar:$kit/native"
  gpus="$(nvidia-smi -L | wc -l)"
  cores="${CORES:-8}"
  data=/dev/shm/zerohop-gpu-data
  opens=()
  local package
  for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent \
    java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
    opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
  done
  opens+=(-Djdk.reflect.useDirectMethodHandle=false -Dio.netty.tryReflectionSetAccessible=true --add-modules=jdk.incubator.vector)
}

# A standalone master and a worker that offers all GPUs; both end with this script.
start_cluster() { # folder
  cluster="$1"
  rm -rf "$cluster" "$SPARK_LOCAL_DIRS"
  mkdir -p "$cluster" "$SPARK_LOCAL_DIRS"
  printf '#!/bin/sh\necho %s\n' "'{\"name\":\"gpu\",\"addresses\":[\"$(seq -s '","' 0 $((gpus - 1)))\"]}'" > "$cluster/gpus"
  chmod +x "$cluster/gpus"
  java -Xmx1g "${opens[@]}" -cp "$SPARK_HOME/jars/*" org.apache.spark.deploy.master.Master \
    --host 127.0.0.1 --port 7077 --webui-port 8081 > "$cluster/master.log" 2>&1 &
  master=$!
  java -Xmx1g "${opens[@]}" -Dspark.worker.resource.gpu.amount="$gpus" \
    -Dspark.worker.resource.gpu.discoveryScript="$cluster/gpus" -cp "$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --port 7078 --webui-port 8082 \
    -c $((cores * gpus)) -m 200g -d "$cluster/work" spark://127.0.0.1:7077 > "$cluster/worker.log" 2>&1 &
  worker=$!
  trap stop_cluster EXIT
  local i
  for i in $(seq 60); do
    ! grep -q 'Successfully registered with master' "$cluster/worker.log" || return 0
    sleep 0.5
  done
  echo "the cluster did not start:" >&2
  tail -5 "$cluster/master.log" "$cluster/worker.log" >&2
  return 1
}

stop_cluster() {
  trap - EXIT
  kill "$worker" "$master" 2>/dev/null || true
  wait "$worker" "$master" 2>/dev/null || true
  rm -rf "$SPARK_LOCAL_DIRS"
}

settings() { # contender, its name followed by "+arena" for another memory pool of RAPIDS
  [[ "$1" != *+arena ]] || echo "--conf spark.rapids.memory.gpu.pool=ARENA"
  echo "--conf spark.executor.cores=$cores --conf spark.executor.memory=16g
    --conf spark.executor.resource.gpu.amount=1 --conf spark.task.resource.gpu.amount=0.01
    --conf spark.executor.extraClassPath=$rapids:$zerohop --conf spark.sql.autoBroadcastJoinThreshold=-1"
  case "${1%+*}" in
    zerohop)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin
        --conf spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager" ;;
    sort)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.shuffle.compress=false" ;;
    multithreaded)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.shuffle.compress=false
        --conf spark.shuffle.manager=com.nvidia.spark.rapids.spark413.RapidsShuffleManager
        --conf spark.rapids.shuffle.mode=MULTITHREADED" ;;
    ucx)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.rapids.shuffle.mode=UCX
        --conf spark.shuffle.manager=com.nvidia.spark.rapids.spark413.RapidsShuffleManager
        --conf spark.executorEnv.LD_LIBRARY_PATH=$UCX/lib:${LD_LIBRARY_PATH:-}
        --conf spark.executorEnv.UCX_MODULE_DIR=$UCX/lib/ucx --conf spark.executorEnv.UCX_ERROR_SIGNALS=
        --conf spark.executorEnv.UCX_MEMTYPE_CACHE=n --conf spark.executorEnv.UCX_RNDV_SCHEME=put_zcopy
        --conf spark.executorEnv.UCX_MAX_RNDV_RAILS=1
        --conf spark.executorEnv.UCX_TLS=cuda_copy,cuda_ipc,tcp" ;;
    *)
      echo "no contender '$1'; there are zerohop, sort, multithreaded and ucx" >&2
      return 1 ;;
  esac
}

# Submits one application to a cluster of its own; its logs stay in OUT.
submit() { # name, contender, more settings, class, arguments ...
  local name="$1" contender="$2" more="$3" class="$4" status=0 settings
  shift 4
  settings="$(settings "$contender")" || return 1
  start_cluster "/tmp/zerohop-cluster"
  # shellcheck disable=SC2086
  timeout -k 5 "${LIMIT:-150}" java -Xmx4g "${opens[@]}" -cp "$rapids:$zerohop:$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.SparkSubmit --master spark://127.0.0.1:7077 $settings $more ${MORE:-} \
    --class "$class" "$tests" "$@" > "$out/$name.out" 2> "$out/$name.err" || status=$?
  stop_cluster
  cat "$cluster"/work/*/*/stderr > "$out/$name.executors.err" 2>/dev/null || true
  if [ "$status" -ne 0 ]; then
    echo "$name ended with status $status:" >&2
    grep -hE "ERROR|Exception|Caused" "$out/$name.err" "$out/$name.executors.err" | cut -c1-250 | awk '!seen[$0]++' | head -8 >&2
  fi
  return "$status"
}

check() { # name, more settings, rows, way that blocks must take, queries ...
  local name="$1" more="$2" status=0
  shift 2
  submit "$name" zerohop "--conf spark.sql.shuffle.partitions=16 $more" io.zerohop.gpu.GpuCheckApp \
    "$data" "$out/$name.json" "$@" || status=$?
  rm -rf "$data"
  # Right rows, but by the slower way.
  if grep -h 'in a way that Zerohop does not know' "$out/$name.executors.err" >&2; then status=1; fi
  grep -vE '"equal":true.*"went_its_way":true' "$out/$name.out" | grep -E '^\{|^[-+] |^checked|^expected' | cut -c1-300 | sed "s/^/$name: /" || true
  return "$status"
}

# Times exchanges, one contender after the other.
bench() { # contenders, queries
  local rounds="${ROUNDS:-5}" contender status=0
  # Sums of hashes overflow, which is what they are for.
  local more="--conf spark.sql.ansi.enabled=false --conf spark.sql.adaptive.coalescePartitions.enabled=false"
  rm -f "$out/bench.jsonl"
  for contender in $1; do
    submit "$contender" "$contender" "$more" io.zerohop.gpu.GpuBenchApp "${contender%+*}" "$out/bench.jsonl" \
      "${MILLIONS:-80}" 32 "$rounds" "$2" || status=1
  done
  return "$status"
}

# Kills an executor under a query whose map tasks give other rows each time, without Spark's row
# checksums and with them.
checksums_retry() {
  [ "$gpus" -gt 1 ] || { echo "the check needs two GPUs: one executor is killed, the other goes on" >&2; return 1; }
  local folder cores=1 status=0
  folder="$(mktemp -d)"
  submit checksums_retry zerohop "--conf spark.sql.shuffle.partitions=4 --conf spark.locality.wait=0
    --conf spark.shuffle.io.maxRetries=1 --conf spark.shuffle.io.retryWait=200ms" \
    io.zerohop.gpu.GpuChecksumApp "$folder" "$out/checksums_retry.json" gpu || status=$?
  rm -rf "$folder"
  grep '^{' "$out/checksums_retry.out" || true
  return "$status"
}

# Times exchanges without row checksums and with them, in turns.
checksums_bench() {
  local keys="spark.sql.shuffle.orderIndependentChecksum" on turn
  local more="--conf spark.sql.ansi.enabled=false --conf spark.sql.adaptive.coalescePartitions.enabled=false"
  rm -f "$out/checksums.jsonl"
  for turn in $(seq "${TURNS:-2}"); do
    for on in false true; do
      submit "checksums_$on$turn" zerohop \
        "$more --conf $keys.enabled=$on --conf $keys.enableFullRetryOnMismatch=$on" \
        io.zerohop.gpu.GpuBenchApp "checksums=$on" "$out/checksums.jsonl" \
        "${MILLIONS:-80}" 32 "${ROUNDS:-5}" "${QUERIES:-64:repartition,join 2000:repartition}" || return 1
    done
  done
}

command="${1:-}"
case "$command" in
  pack) [ $# -eq 2 ] || usage; pack "$2" ;;
  check | paths | bench | checksums | demo | rows) [ $# -eq 4 ] || usage; prepare "$2" "$3" "$4" ;;
  *) usage ;;
esac

case "$command" in
  check)
    check rapids_check "" 1000000 direct
    python3 "$dir/rapids_rows.py" check "$dir/commit" "$out/gpu_rapids.json" "$out"/rapids_check.json ;;
  paths)
    some="group_by_string group_by_many nested inner_join window count_of_nothing"
    tiny="--conf spark.zerohop.device.pool.size=2m --conf spark.zerohop.device.segment.size=2m"
    status=0
    # shellcheck disable=SC2086
    {
      check staged "--conf spark.zerohop.paths=staged" 500000 staged $some || status=1
      check host_pool "$tiny" 500000 direct $some || status=1
      check files "$tiny --conf spark.zerohop.pool.size=4m --conf spark.zerohop.segment.size=2m" 500000 any $some || status=1
      check other_order "--conf spark.plugins=io.zerohop.spark.ZerohopPlugin,com.nvidia.spark.SQLPlugin" 500000 direct $some || status=1
      check serialised "--conf spark.zerohop.rapids.enabled=false" 500000 direct $some || status=1
    }
    python3 "$dir/rapids_rows.py" check "$dir/commit" "$out/gpu_rapids_paths.json" \
      "$out"/{staged,host_pool,files,other_order,serialised}.json
    exit "$status" ;;
  bench)
    cores="${CORES:-16}"
    status=0
    large="64:repartition,group_by,join"
    # The large ones, a curve over partitions, and the same with hardly any rows: what is left then
    # is what tasks cost that shuffle nothing.
    bench "${CONTENDERS:-zerohop sort multithreaded}" \
      "${QUERIES:-$large 200:repartition 500:repartition 2000:repartition $large:${ROUNDS:-5}:1}" || status=1
    python3 "$dir/rapids_rows.py" bench "$dir/commit" "$out/gpu_exchange.json" "$out/bench.jsonl"
    exit "$status" ;;
  checksums)
    status=0
    checksums_retry || status=1
    cores="${CORES:-16}"
    checksums_bench || status=1
    python3 "$dir/rapids_rows.py" checksums "$dir/commit" "$out/gpu_checksums.json" \
      "$out/checksums_retry.json" "$out/checksums.jsonl"
    exit "$status" ;;
  demo)
    cores="${CORES:-16}"
    ROUNDS="${ROUNDS:-3}" bench "${CONTENDERS:-multithreaded zerohop}" \
      "${QUERIES:-64:repartition,group_by,join 500:repartition}"
    python3 "$dir/rapids_rows.py" demo "$dir/commit" "$out/gpu_demo.json" "$out/bench.jsonl" ;;
  rows)
    project="$(mktemp -d)"
    built="$project/integration-tests/target"
    mkdir -p "$built/spark-home/conf" "$built/application-jars" "$project/plugin/target" "$project/run"
    ln -s "$SPARK_HOME/jars" "$SPARK_HOME/RELEASE" "$built/spark-home/"
    ln -s "$tests" "$built/"
    ln -s "$dir"/picocli-*.jar "$dir"/tpch-*.jar "$built/application-jars/"
    ln -s "$zerohop" "$project/plugin/target/"
    timeout -k 10 "${LIMIT:-300}" java -Xmx512m \
      -cp "$tests:$built/application-jars/*:$SPARK_HOME/jars/*" \
      io.zerohop.bench.Bench host_job --commit "$(cat "$dir/commit")" --project "$project" --run-dir "$project/run" \
      --scale 0.2 --quick-scale 0.2 --iterations 0 --contenders zerohop,sort --executor-cores 4 \
      --conf spark.zerohop.test.device=cuda --out "$project/spark.json"
    python3 "$dir/rapids_rows.py" rows "$dir/commit" "$out/gpu_spark.json" "$project/spark.json"
    rm -rf "$project"
    ! grep -q '"staged_bytes": [1-9]' "$out/gpu_spark.json" || { echo "some blocks were staged" >&2; exit 1; } ;;
esac
