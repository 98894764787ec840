#!/usr/bin/env bash
# Runs Spark with the RAPIDS Accelerator on a GPU host, its shuffles through Zerohop.
#
#   rapids.sh pack DIR             collects our jars into DIR (3 MiB); needs the built tree
#   rapids.sh check DIR KIT OUT    queries of every kind, every row compared with the CPU's
#   rapids.sh paths DIR KIT OUT    some of them with each path forced, and with pools that are full
#   rapids.sh bench DIR KIT OUT    exchanges timed, beside file-based shuffles
#   rapids.sh rows DIR KIT OUT     the demo's queries without RAPIDS, their rows in GPU memory
#   rapids.sh tpch DIR KIT OUT     TPC-H's 22 queries, compared with the CPU's rows or timed
#
# KIT is a folder with jre17 (a Java run time), spark (jars/ and RELEASE of Spark 4.1.3), rapids.jar
# (RAPIDS Accelerator 26.08.1 for CUDA 13) and native (amd64/Linux/libcudf.so). Each GPU gets one
# executor. CORES is how many tasks an executor runs at a time (8), LIMIT how many seconds one
# application may take (150).
#
# tpch asks tables of SCALE (10), which it generates into /dev/shm once and leaves there. MODE is
# check, time or tables (which stops after that); CONTENDERS take turns in the order given, which may
# name one twice; ROUNDS (3) are counted after one that warms up; QUERIES are some of q1 to q22;
# QUERY_LIMIT is how many seconds a query may take (60); CONF is for more settings, as
# "--conf key=value". Answers of the CPU are taken from DIR/answers/SCALE, as pack found them in
# integration-tests/target/answers; those that are not there are asked for.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
usage() { sed -n '2,23s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }

pack() {
  local out="$1" root
  root="$(cd "$here/../.." && pwd)"
  mkdir -p "$out"
  rm -rf "${out:?}"/*
  cp "$root"/plugin/target/zerohop-spark-*.jar "$root"/integration-tests/target/zerohop-integration-tests-*.jar \
    "$root"/integration-tests/target/application-jars/*.jar "$here/rapids.sh" "$here/rapids_rows.py" "$out/"
  [ ! -d "$root/integration-tests/target/answers" ] || cp -r "$root/integration-tests/target/answers" "$out/"
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

settings() { # contender
  echo "--conf spark.executor.cores=$cores --conf spark.executor.memory=16g
    --conf spark.executor.resource.gpu.amount=1 --conf spark.task.resource.gpu.amount=0.01
    --conf spark.executor.extraClassPath=$rapids:$zerohop --conf spark.sql.autoBroadcastJoinThreshold=-1"
  case "$1" in
    zerohop)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin
        --conf spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager" ;;
    sort)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.shuffle.compress=false" ;;
    multithreaded)
      echo "--conf spark.plugins=com.nvidia.spark.SQLPlugin --conf spark.shuffle.compress=false
        --conf spark.shuffle.manager=com.nvidia.spark.rapids.spark413.RapidsShuffleManager
        --conf spark.rapids.shuffle.mode=MULTITHREADED" ;;
  esac
}

# Submits one application to a cluster of its own; its logs stay in OUT.
submit() { # name, contender, more settings, class, arguments ...
  local name="$1" contender="$2" more="$3" class="$4" status=0
  shift 4
  start_cluster "/tmp/zerohop-cluster"
  # shellcheck disable=SC2046,SC2086
  timeout -k 5 "${LIMIT:-150}" java -Xmx4g "${opens[@]}" -cp "$rapids:$zerohop:$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.SparkSubmit --master spark://127.0.0.1:7077 $(settings "$contender") $more \
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
  grep -vE '"equal":true.*"went_its_way":true' "$out/$name.out" | grep -E '^\{|^[-+] |^checked|^expected' | cut -c1-300 | sed "s/^/$name: /" || true
  return "$status"
}

# TPC-H's tables in memory, where later calls find them again.
generate() { # scale, folder
  local start="$SECONDS"
  [ ! -d "$2" ] || return 0
  rm -rf "$2.new"
  timeout -k 5 "${GENERATE_LIMIT:-500}" java -Xmx16g "${opens[@]}" -cp "$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.SparkSubmit --master "local[$(nproc)]" --conf spark.ui.enabled=false \
    --jars "$tpch" --class io.zerohop.workload.TpchData "$tests" "$2.new" "$1" > "$out/tables.out" 2> "$out/tables.err" || {
    echo "the tables could not be generated:" >&2
    grep -hE "ERROR|Exception|Caused" "$out/tables.err" | cut -c1-250 | head -8 >&2
    rm -rf "$2.new"
    return 1
  }
  mv "$2.new" "$2"
  echo "generated scale $1: $(du -sm "$2" | cut -f1) MB in $((SECONDS - start)) s"
}

# One application for TPC-H's queries.
ask() { # name, contender, mode and its arguments ...
  local name="$1" contender="$2"
  shift 2
  # shellcheck disable=SC2086
  LIMIT="${LIMIT:-240}" submit "$name" "$contender" \
    "--jars $tpch --conf spark.sql.shuffle.partitions=${PARTITIONS:-64} ${CONF:-}" io.zerohop.gpu.GpuTpchApp \
    "$tables" "$scale" "${QUERY_LIMIT:-60}" "$@" ${QUERIES:-}
}

command="${1:-}"
case "$command" in
  pack) [ $# -eq 2 ] || usage; pack "$2" ;;
  check | paths | bench | rows | tpch) [ $# -eq 4 ] || usage; prepare "$2" "$3" "$4" ;;
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
    rm -f "$out/bench.jsonl"
    rounds="${ROUNDS:-5}"
    # Sums of hashes overflow, which is what they are for.
    more="--conf spark.sql.ansi.enabled=false --conf spark.sql.adaptive.coalescePartitions.enabled=false"
    status=0
    for contender in ${CONTENDERS:-zerohop sort multithreaded}; do
      # The large ones, a curve over partitions, and the same with hardly any rows: what is left is
      # what tasks cost that shuffle nothing.
      submit "$contender" "$contender" "$more" io.zerohop.gpu.GpuBenchApp "$contender" "$out/bench.jsonl" \
        ${MILLIONS:-80} 32 "$rounds" "${QUERIES:-64:repartition,group_by,join 200:repartition 500:repartition 2000:repartition}" || status=1
      submit "$contender-floor" "$contender" "$more" io.zerohop.gpu.GpuBenchApp "$contender" "$out/bench.jsonl" \
        1 32 "$rounds" "${FLOORS:-64:repartition,group_by,join 2000:repartition}" || status=1
    done
    python3 "$dir/rapids_rows.py" bench "$dir/commit" "$out/gpu_exchange.json" "$out/bench.jsonl"
    exit "$status" ;;
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
  tpch)
    cores="${CORES:-16}"
    scale="${SCALE:-10}"
    tables="/dev/shm/zerohop-tpch-$scale"
    tpch="$(echo "$dir"/tpch-*.jar)"
    status=0
    generate "$scale" "$tables"
    case "${MODE:-check}" in
      tables) ;;
      check)
        rm -f "$out"/tpch_check_*.json
        for contender in ${CONTENDERS:-zerohop}; do
          name="tpch_check_$contender"
          ask "$name" "$contender" check "$dir/answers/$scale" "$out/$name.json" || status=1
          grep -vE '"equal":true.*"staged_bytes":0' "$out/$name.out" | cut -c1-300 | sed "s/^/$contender: /" || true
        done
        python3 "$dir/rapids_rows.py" check "$dir/commit" "$out/gpu_tpch_check.json" "$out"/tpch_check_*.json ;;
      time)
        rm -f "$out/tpch.jsonl"
        turn=0
        for contender in ${CONTENDERS:-zerohop sort multithreaded}; do
          turn=$((turn + 1))
          ask "tpch_$turn-$contender" "$contender" time "$out/tpch.jsonl" "$contender" "${ROUNDS:-3}" || status=1
        done
        python3 "$dir/rapids_rows.py" tpch "$dir/commit" "$out/gpu_tpch.json" "$out/tpch.jsonl" || status=1 ;;
      *) usage ;;
    esac
    exit "$status" ;;
esac
