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

# At Spark's defaults, but where all partitions are read. The warm-up is part of each application.
blocks() {
  local status=0 all="repartition,group_by,join"
  in_turns "${CONTENDERS:-zerohop zerohop+packed multithreaded sort}" \
    "${QUERIES:-64x64:$all:${ROUNDS:-3}:${MILLIONS:-80}:all 200x64:$all 200x2000:$all 1000x5000:$all}" || status=1
  python3 "$dir/rapids/results.py" blocks "$dir/commit" "$out/gpu_blocks.json" "$out/blocks.jsonl"
  return "$status"
}

# The same on two releases of Spark in turns, at the defaults of each.
form() {
  local status=0 turn all="repartition,range,group_by,join,text:${ROUNDS:-3}:${MILLIONS:-80}:all" to="$out" first="$kit" of pairs=()
  for ((turn = 0; turn < ${TURNS:-2}; turn++)); do
    for of in "$first" "$OTHER_KIT"; do
      prepare "$dir" "$of" "$to/$turn-$(basename "$of")"
      TURNS=1 in_turns zerohop "${QUERIES:-200x200:$all 200x2000:$all}" || status=1
      [ ! -f "$out/blocks.jsonl" ] || pairs+=("$spark_version=$out/blocks.jsonl")
    done
  done
  python3 "$dir/rapids/results.py" form "$dir/commit" "$to/gpu_form.json" "${pairs[@]}" || status=1
  return "$status"
}

# Executors as if each were on a node of its own, at defaults, beside files that are not shared either.
between() {
  local status=0 all="repartition,group_by,join,text:${ROUNDS:-3}:${MILLIONS:-80}:all" on contenders=()
  for on in ${NETWORKS:-plain}; do
    on="+${on#plain}"
    contenders+=("zerohop+between${on%+}" "multithreaded+between${on%+}" "multithreaded+between+compress${on%+}")
  done
  in_turns "${CONTENDERS:-${contenders[*]}}" \
    "${QUERIES:-200x200:$all 200x2000:$all}" || status=1
  python3 "$dir/rapids/results.py" between "$dir/commit" "$out/gpu_between.json" "$out/blocks.jsonl"
  return "$status"
}

in_turns() { # contenders, queries
  local contender status=0 turn
  cores="${CORES:-16}"
  rm -f "$out/blocks.jsonl"
  for ((turn = 0; turn < ${TURNS:-1}; turn++)); do
    for contender in $1; do
      submit "$contender" "$contender" "$wrapping_sums" io.zerohop.gpu.GpuBenchApp "$contender" "$out/blocks.jsonl" \
        "${MILLIONS:-80}" 64 "${ROUNDS:-3}" "$2" || status=1
    done
  done
  return "$status"
}

# The same query with an exchange and without, in turns, and what its tasks spend their time with.
tax() {
  local contender status=0
  cores="${CORES:-16}"
  rm -f "$out/tax.jsonl"
  for contender in ${CONTENDERS:-zerohop multithreaded}; do
    submit "$contender" "$contender" "$wrapping_sums --conf spark.rapids.sql.metrics.level=DEBUG" io.zerohop.gpu.GpuTaxApp "$contender" "$out/tax.jsonl" \
      "${MILLIONS:-80}" "${ROUNDS:-5}" "${SHAPES:-64x64 200x64 200x2000}" || status=1
  done
  python3 "$dir/rapids/results.py" tax "$dir/commit" "$out/gpu_tax.json" "$out/tax.jsonl" || status=1
  return "$status"
}

demo() {
  cores="${CORES:-16}"
  ROUNDS="${ROUNDS:-3}" exchanges "${CONTENDERS:-multithreaded zerohop}" \
    "${QUERIES:-64:repartition,group_by,join 500:repartition}"
  python3 "$dir/rapids/results.py" demo "$dir/commit" "$out/gpu_demo.json" "$out/bench.jsonl"
}
