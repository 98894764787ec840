# shellcheck shell=bash disable=SC2154
# The doctor and the tab GPU Shuffle where there are GPUs: by itself, as a job of an application with
# README's keys, with faults planted, and what the tab says beside what tasks reported.

# Examines this machine in a process of its own. An exit status of 1 or 2 is what its report says.
examine() { # name, jar, more arguments ...
  local name="$1" jar="$2"
  shift 2
  UCX_LOG_FILE=stderr timeout -k 5 "${LIMIT:-150}" java -jar "$jar" doctor --json "$@" \
    > "$out/doctor-$name.json" 2> "$out/doctor-$name.err" || true
}

# Our jar as it is where no CUDA toolkit was there to build it.
without_kernels() { # jar, copy
  python3 - "$@" << 'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as whole, zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as bare:
    for entry in whole.infolist():
        if not entry.filename.endswith(".fatbin"):
            bare.writestr(entry, whole.read(entry))
END
}

# Keeps the last page that the tab has shown while the application ran.
watch_tab() {
  while sleep 0.5; do
    curl -sf -m 5 "http://127.0.0.1:$((port + 1006))/zerohop/" > "$out/tab-live.new" && mv "$out/tab-live.new" "$out/tab-live.html"
  done
}

# The same page of the history server, which has the event log only. It is not asked for the
# application before it lists it: Spark 4.1 takes one that it does not know for a log that rolls.
replay_tab() {
  local history id i server="http://127.0.0.1:$((port + 1007))"
  id="$(basename "$(echo "$out"/tab-events/*)")"
  java -Xmx1g @"$dir/java.options" -Dspark.history.ui.port=$((port + 1007)) -Dspark.history.fs.logDirectory="file:$out/tab-events" \
    -cp "$zerohop:$SPARK_HOME/jars/*" org.apache.spark.deploy.history.HistoryServer > "$out/tab-history.err" 2>&1 &
  history=$!
  for i in $(seq 60); do
    # The first answer sends us to the same page once it has read the log.
    if curl -sf -m 5 "$server/api/v1/applications" | grep -q "$id"; then
      curl -sfL -m 20 "$server/history/$id/zerohop/" > "$out/tab-history.html" && break
    fi
    sleep 0.5
  done
  kill "$history" && wait "$history" 2> /dev/null || true
}

tab() {
  local status=0 watch
  rm -rf "$out"/tab* && mkdir "$out/tab-events"
  watch_tab &
  watch=$!
  # shellcheck disable=SC2086 # These are several words.
  submit tab zerohop "$whole_exchanges --conf spark.ui.enabled=true --conf spark.ui.port=$((port + 1006))
    --conf spark.eventLog.enabled=true --conf spark.eventLog.dir=file:$out/tab-events --conf spark.eventLog.rolling.enabled=false
    --conf spark.eventLog.compress=false" io.zerohop.gpu.GpuBenchApp zerohop "$out/tab.jsonl" \
    "${MILLIONS:-40}" $((16 * gpus)) 2 "${QUERIES:-64:repartition,group_by,join}" || status=1
  kill "$watch" && wait "$watch" 2> /dev/null || true
  [ "$status" -ne 0 ] || replay_tab
  return "$status"
}

doctor() {
  local status=0 keys=(
    --spark-home "$SPARK_HOME" --conf spark.driver.extraClassPath="$rapids:$zerohop"
    --conf spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager
    --conf "spark.plugins=com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin")
  rm -f "$out"/doctor-*
  examine alone "$zerohop"
  UCX_LOG_FILE=stderr java -jar "$zerohop" doctor "${keys[@]}" > "$out/doctor-keys.txt" 2> /dev/null || true # For people.
  examine keys "$zerohop" --no-measure "${keys[@]}"
  CUDA_VISIBLE_DEVICES=0 examine one_gpu "$zerohop"
  CUDA_VISIBLE_DEVICES='' examine no_gpu_seen "$zerohop" --no-measure
  without_kernels "$zerohop" "$out/doctor-bare.jar"
  examine no_kernels "$out/doctor-bare.jar" --no-measure
  rm "$out/doctor-bare.jar"
  # Exit status 1 is a warning of this machine's, which the report says.
  submit doctor-job zerohop "" io.zerohop.spark.Doctor --json || true
  tab || status=1
  python3 "$dir/rapids/results.py" doctor "$dir/commit" "$out/gpu_doctor.json" "$out" || status=1
  return "$status"
}
