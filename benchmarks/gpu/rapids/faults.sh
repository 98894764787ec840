# shellcheck shell=bash disable=SC2154
# The suites of io.zerohop.spark.gpu.

# The driver program for the kit's Spark: the build's own, or one of fault_app.sh.
fault_app() {
  local found=("$dir/fault-apps/${spark_version%.*}".*"_$SPARK_SCALA_VERSION.jar")
  if [ -f "${found[0]}" ]; then
    echo "${found[0]}"
  elif [ "$(cat "$dir/suites/spark")" = "${spark_version%.*}_$SPARK_SCALA_VERSION" ]; then
    echo "$dir/suites/suites.jar"
  else
    echo "the fault suites have no program for Spark $spark_version (Scala $SPARK_SCALA_VERSION): portable/fault_app.sh makes it" >&2
    return 1
  fi
}

# Runs suites against one cluster, which has room for two executors however many GPUs there are.
suites() { # suites ...
  local status=0 app name named=() bad="ZH-5056" executors=$((gpus < 2 ? 2 : gpus))
  cores="${CORES:-4}"
  app="$(fault_app)" || return 1
  lay_out || return 1
  cores=$((cores * executors / gpus)) start_cluster || {
    stop_cluster
    return 1
  }
  for name in "$@"; do named+=(-s "io.zerohop.spark.gpu.$name" ${TESTS:+-z "$TESTS"}); done
  rm -rf "$out/faults"
  mkdir -p "$out/faults"
  timeout -k 10 "${LIMIT:-540}" java -Xmx1g -cp "$tests:$zerohop:$dir/suites/*:$SPARK_HOME/jars/*" \
    -Dzerohop.test.master="spark://127.0.0.1:$port" -Dzerohop.test.project="$project" \
    -Dzerohop.test.suites="$app" -Dzerohop.test.rapids="$([ -n "${SMOKE:-}" ] || echo "$rapids")" \
    -Dzerohop.test.libucx="${LIBUCX:+${LIBUCX%% *}/lib:${LD_LIBRARY_PATH:-}}" \
    -Dzerohop.test.faultRuns="${RUNS:-1}" ${UNTIL:+-Dzerohop.test.until="$UNTIL"} \
    -Dzerohop.test.socketDir="$socket_dir" -Dzerohop.test.share="${GPU_APPS:-${SHARE:-1}}" -Dzerohop.test.gpus="$gpus" -Dzerohop.test.cores="$cores" -Dzerohop.test.target="$out/faults" \
    org.scalatest.tools.Runner "${named[@]}" -oDW -u "$out/faults/junit" || status=$?
  stop_cluster
  cat "$cluster"/executors/*/*/*/stderr > "$out/faults/executors.err" 2> /dev/null || true
  rm -rf "$project"
  # RAPIDS' own split leaves slices to the garbage collector when a task that writes is killed; what
  # is split by its serializer is one batch, which the writer closes.
  [ -n "${SLICES_LEFT:-}" ] || bad="LEAKED\|$bad"
  if grep -h "$bad" "$out/faults/executors.err" | head -5 | grep . >&2; then status=1; fi
  if [[ " $* " == *" GpuNodeFaultSuite "* ]] && [ -z "${SMOKE:-}" ] &&
    ! grep -q 'GPU memory: one-sided gets' "$out/faults/executors.err"; then
    echo "nothing went from GPU to GPU by UCX:" >&2
    grep -h 'is read by UCX' "$out/faults/executors.err" | head -1 >&2
    status=1
  fi
  return "$status"
}

faults() {
  local status=0
  # shellcheck disable=SC2086 # These are several words.
  suites ${SUITES:-GpuRefusalSuite GpuReadinessSuite GpuFaultSuite GpuSentFaultSuite ${LIBUCX:+GpuNodeFaultSuite} GpuQuerySuite GpuSettingsSuite GpuFallbackSuite GpuKeeperSuite GpuKeeperFilesSuite GpuKeeperFarSuite GpuKeeperAllocationSuite GpuKeeperGrowthSuite} || status=$?
  [ -n "${SMOKE:-}" ] ||
    python3 "$dir/rapids/results.py" faults "$dir/commit" "$out/gpu_faults.json" "$out"/faults/junit/*.xml
  return "$status"
}
