# shellcheck shell=bash disable=SC2154
# Exchanges timed, one contender after the other.

exchanges() { # contenders, queries
  local rounds="${ROUNDS:-5}" contender status=0
  rm -f "$out/bench.jsonl"
  for contender in $1; do
    submit "$contender" "$contender" "$whole_exchanges" io.zerohop.gpu.GpuBenchApp "${contender%+arena}" "$out/bench.jsonl" \
      "${MILLIONS:-80}" $((16 * gpus)) "$rounds" "$2" || status=1
  done
  return "$status"
}

bench() {
  local status=0
  cores="${CORES:-16}"
  local large="64:repartition,group_by,join"
  # The large ones, a curve over partitions, and the same with hardly any rows: what is left then
  # is what tasks cost that shuffle nothing.
  exchanges "${CONTENDERS:-zerohop sort multithreaded}" \
    "${QUERIES:-$large 200:repartition 500:repartition 2000:repartition $large:${ROUNDS:-5}:1}" || status=1
  python3 "$dir/rapids/results.py" bench "$dir/commit" "$out/gpu_exchange.json" "$out/bench.jsonl"
  return "$status"
}

demo() {
  cores="${CORES:-16}"
  ROUNDS="${ROUNDS:-3}" exchanges "${CONTENDERS:-multithreaded zerohop}" \
    "${QUERIES:-64:repartition,group_by,join 500:repartition}"
  python3 "$dir/rapids/results.py" demo "$dir/commit" "$out/gpu_demo.json" "$out/bench.jsonl"
}
