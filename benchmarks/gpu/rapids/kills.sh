# shellcheck shell=bash disable=SC2154
# Executors that are killed, again and again, by several test runners at a time.

# What Spark needs of a JVM, and how long a soak may go on before it ends between two runs.
soaking() { # name of the runner, seconds
  echo -Xmx1500m -Xss4m @"$dir/java.options" -Dzerohop.test.faultRuns="${RUNS:-6}" -Dzerohop.test.until=$(($(date +%s) + $2)) \
    -Dspark.deploy.appIdPattern=app-%s-%04d-"$1"
}

# The fault suites on host memory, each with a cluster of its own, until time is up.
host_runner() { # number, seconds
  local folder="$out/host-$1" end=$(($(date +%s) + $2)) round=0 status=0 left suites
  while left=$((end - $(date +%s))) && [ "$left" -gt 0 ] && [ "$status" -eq 0 ]; do
    suites="$(host_suites $(($1 + round)))"
    round=$((round + 1))
    mkdir -p "$folder/$round/tmp" "$folder/$round/local" "$folder/$round/home"
    ln -s "$SPARK_HOME/jars" "$SPARK_HOME/RELEASE" "$folder/$round/home/"
    # A wait that passes its own limit is told as a hang; what goes on for longer is ended.
    # shellcheck disable=SC2046,SC2086 # These are several words.
    (cd "$folder/$round" && SPARK_TESTING=1 SPARK_HOME="$folder/$round/home" SPARK_LOCAL_DIRS="$folder/$round/local" \
      timeout -k 10 $((left + GRACE)) java $(soaking "h$1-$round" "$left") -cp "$tests:$zerohop:$dir/suites/*:$kit/spark/jars/*" \
      -Dspark.testing=true -Dspark.test.home="$folder/$round/home" -Dspark.ui.enabled=false -Dspark.master.rest.enabled=false \
      -Dspark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager \
      -Dspark.executor.extraClassPath="$zerohop:$dir/suites/suites.jar" \
      -Djava.io.tmpdir="$folder/$round/tmp" -Dzerohop.test.jar="$zerohop" -Dzerohop.test.target="$folder/$round" \
      org.scalatest.tools.Runner $suites -oDW > "$folder/$round/runner.out" 2> "$folder/$round/runner.err") || status=$?
    rm -rf "$folder/$round/tmp" "$folder/$round/local"
    # Logs are of use where something failed.
    [ "$status" -ne 0 ] || rm -rf "${folder:?}/$round/home" "$folder/$round/runner.err"
  done
  [ "$status" -eq 0 ] || echo "host runner $1 ended with status $status; $folder/$round" >&2
  return "$status"
}

# All suites, beginning with another one each time, so that a short soak has some of all.
host_suites() { # turn
  local all=("-s io.zerohop.spark.faults.ExecutorLossSuite" "-s io.zerohop.spark.faults.SentLossSuite"
    "-s io.zerohop.spark.faults.KeeperLossSuite") suite i
  for suite in SpeculationSuite DecommissionSuite DynamicAllocationSuite; do
    all+=("-s io.zerohop.spark.faults.$suite -z killed")
  done
  [ -z "${SENT:-}" ] || all=("${all[1]}")
  [ -z "${KEPT:-}" ] || all=("${all[2]}")
  for ((i = 0; i < ${#all[@]}; i++)); do echo "${all[($1 + i) % ${#all[@]}]}"; done
}

# The GPU's kills on one GPU, which several runners share, with a cluster of its own, until time is up.
gpu_runner() { # number, GPU, seconds
  local status=0 end=$(($(date +%s) + $3)) round=0 left folder all
  folder="$out/$([ -n "${SMOKE:-}" ] && echo smoke || echo gpu)-$1"
  export CUDA_VISIBLE_DEVICES="$2"
  while left=$((end - $(date +%s))) && [ "$left" -gt 0 ] && [ "$status" -eq 0 ]; do
    round=$((round + 1))
    PORT=$((port + 10 * $1)) GPUS=1 prepare "$dir" "$kit" "$folder/$round"
    # Runners take turns at the settings that the suites stand for.
    all=(GpuFaultSuite GpuSentFaultSuite)
    [ -z "${SENT:-}" ] || all=(GpuSentFaultSuite)
    [ -z "${KEPT:-}" ] || all=(GpuKeeperSuite)
    TESTS=killed LIMIT=$((left + GRACE)) UNTIL="$end" RUNS="${RUNS:-12}" GPU_APPS="$apps" \
      suites "${all[($1 + round) % ${#all[@]}]}" > "$out/runner.out" 2> "$out/runner.err" || status=$?
    port="$base"
  done
  [ "$status" -eq 0 ] || echo "GPU runner $1 ended with status $status; $folder/$round" >&2
  return "$status"
}

kills() {
  local status=0 pids=() runner seconds="${LIMIT:-480}" jobs="${JOBS:-$(($(nproc) < 3 ? 1 : $(nproc) / 3))}"
  local devices=0 apps="${GPU_APPS:-2}" base="$port"
  GRACE="${GRACE:-100}"
  rm -rf "$out"/{host,gpu,smoke}-*
  # A smoke run has none, but tries their runners on CPU rows if it is told how many.
  [ -n "${SMOKE:-}" ] && [ -z "${GPU_APPS:-}" ] || devices="$gpus"
  for ((runner = 0; runner < jobs; runner++)); do
    host_runner "$runner" "$seconds" &
    pids+=($!)
  done
  for ((runner = 0; runner < devices * apps; runner++)); do
    gpu_runner "$runner" $((runner % devices)) "$seconds" &
    pids+=($!)
  done
  for runner in "${pids[@]}"; do wait "$runner" || status=1; done
  rm -f "$out/kills.json"
  python3 "$dir/rapids/kills.py" "$out/kills.json" "$dir/commit" "$out" || status=1
  return "$status"
}
