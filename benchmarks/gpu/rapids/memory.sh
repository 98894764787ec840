# shellcheck shell=bash disable=SC2154
# Exchanges that GPU memory has no room for.

# One variant of a contender, timed under a name of its own.
variant() { # name, contender, settings
  [[ " ${VARIANTS:-$1} " == *" $1 "* ]] || return 0
  submit "memory-$1" "$2" "$whole_exchanges $3" io.zerohop.gpu.GpuBenchApp "$1" "$out/memory.jsonl" \
    "${MILLIONS:-80}" $((16 * gpus)) "${ROUNDS:-5}" "${QUERIES:-64:repartition}"
}

memory() {
  local status=0 fifth pool="spark.zerohop.device.pool.size"
  cores="${CORES:-16}"
  rm -f "$out/memory.jsonl"
  # A row of the repartition takes 56 bytes.
  fifth="$((${MILLIONS:-80} * 56 / 5 / gpus))m"
  variant zerohop zerohop "" || status=1
  # The same without a spiller: what it costs to have one.
  variant no-spill zerohop "--conf spark.zerohop.spill.start=1" || status=1
  variant fifth zerohop "--conf $pool=$fifth" || status=1
  # What is in use moves as well, while it is read.
  variant moving zerohop "--conf $pool=$fifth --conf spark.zerohop.spill.idle=0 --conf spark.zerohop.spill.start=0.3" || status=1
  # RAPIDS' own pool is nearly full, too.
  variant tight zerohop "--conf $pool=1g --conf spark.rapids.memory.gpu.minAllocFraction=0
    --conf spark.rapids.memory.gpu.allocFraction=${TIGHT:-0.04} --conf spark.rapids.memory.gpu.maxAllocFraction=${TIGHT:-0.04}" || status=1
  variant multithreaded multithreaded "" || status=1
  variant sort sort "" || status=1
  python3 "$dir/rapids/results.py" memory "$dir/commit" "$out/gpu_memory.json" "$out/memory.jsonl" || status=1
  return "$status"
}

# One executor of several whose pool has room for a fifth of its blocks, while the others have room:
# beside full pools, with and without borrowed memory. Cases take turns. With SMOKE=1 rows of the CPU,
# which are never in GPU memory: a test of the script.
neighbour() {
  local status=0 turn fifth pool="spark.zerohop.device.pool.size" contender="zerohop+workers"
  cores="${CORES:-16}"
  [ -z "${SMOKE:-}" ] || contender="rows+workers"
  rm -f "$out/neighbour.jsonl"
  fifth="$((${MILLIONS:-80} * 56 / 5 / gpus))m"
  for ((turn = 0; turn < ${TURNS:-2}; turn++)); do
    FIRST="" neighbour_case full "" || status=1
    FIRST="-D$pool=$fifth" neighbour_case borrow "" || status=1
    FIRST="-D$pool=$fifth" neighbour_case off "--conf spark.zerohop.device.pool.borrow=false" || status=1
  done
  python3 "$dir/rapids/results.py" neighbour "$dir/commit" "$out/neighbour.json" "$out/neighbour.jsonl" || status=1
  return "$status"
}

neighbour_case() { # name, settings
  submit "neighbour-$1-$turn" "$contender" "$whole_exchanges $2" io.zerohop.gpu.GpuBenchApp "$1" "$out/neighbour.jsonl" \
    "${MILLIONS:-80}" $((16 * gpus)) "${ROUNDS:-7}" "${QUERIES:-64:repartition}"
}

# One run of GpuPressureApp: a pool of 5 GiB that a shuffle fills, on one GPU.
press() { # way, settings
  submit "pressure-$1" zerohop "$whole_exchanges --conf spark.zerohop.device.pool.size=5g
    --conf spark.rapids.sql.concurrentGpuTasks=2 $2" io.zerohop.gpu.GpuPressureApp "$out/pressure.jsonl" "$1" \
    "${MILLIONS:-4}" "${QUERY_MILLIONS:-40}"
}

# RAPIDS runs out of GPU memory while our pool has some: with what it is given, without, and where
# that would not help; then with less left free than our pool may take, to see whether they meet.
pressure() {
  local status=0 none="--conf spark.rapids.memory.gpu.pool=NONE"
  gpus=1
  cores="${CORES:-8}"
  rm -f "$out/pressure.jsonl"
  press gives "$none" || status=1
  press off "$none --conf spark.zerohop.internal.shrink=false" || status=1
  press limit "" || status=1
  press reserve "--conf spark.rapids.memory.gpu.reserve=1g" || status=1
  python3 "$dir/rapids/results.py" pressure "$dir/commit" "$out/gpu_pressure.json" "$out/pressure.jsonl" || status=1
  return "$status"
}
