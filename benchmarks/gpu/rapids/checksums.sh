# shellcheck shell=bash disable=SC2154
# Spark's row checksums: who runs again when an executor is lost, and what they cost.

# Kills an executor under a query whose map tasks give other rows each time, without Spark's row
# checksums and with them.
checksums_retry() {
  [ $((gpus * per_gpu)) -gt 1 ] || {
    echo "the check needs two executors: one is killed, the other goes on" >&2
    return 1
  }
  local folder cores=1 status=0
  folder="$(mktemp -d)"
  rm -f "$out/checksums_retry.json"
  submit checksums_retry zerohop "$no_broadcasts --conf spark.sql.shuffle.partitions=4 --conf spark.locality.wait=0
    --conf spark.shuffle.io.maxRetries=1 --conf spark.shuffle.io.retryWait=200ms" \
    io.zerohop.gpu.GpuChecksumApp "$folder" "$out/checksums_retry.json" gpu || status=$?
  rm -rf "$folder"
  grep '^{' "$out/checksums_retry.out" || true
  return "$status"
}

# Times exchanges without row checksums and with them, in turns.
checksums_bench() {
  local keys="spark.sql.shuffle.orderIndependentChecksum" on turn
  : > "$out/checksums.jsonl"
  for turn in $(seq "${TURNS:-2}"); do
    for on in false true; do
      submit "checksums_$on$turn" zerohop \
        "$whole_exchanges --conf $keys.enabled=$on --conf $keys.enableFullRetryOnMismatch=$on" \
        io.zerohop.gpu.GpuBenchApp "checksums=$on" "$out/checksums.jsonl" \
        "${MILLIONS:-80}" $((16 * gpus)) "${ROUNDS:-5}" "${QUERIES:-64:repartition,join 2000:repartition}" || return 1
    done
  done
}

checksums() {
  local status=0
  checksums_retry || status=1
  cores="${CORES:-16}"
  checksums_bench || status=1
  python3 "$dir/rapids/results.py" checksums "$dir/commit" "$out/gpu_checksums.json" \
    "$out/checksums_retry.json" "$out/checksums.jsonl" || status=1
  return "$status"
}
