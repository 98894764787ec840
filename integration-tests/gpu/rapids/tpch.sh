# shellcheck shell=bash disable=SC2154
# TPC-H, compared with the CPU or timed.

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
    "--jars $tpch --conf spark.sql.shuffle.partitions=${PARTITIONS:-64}" io.zerohop.gpu.GpuTpchApp \
    "$tables" "$scale" "${QUERY_LIMIT:-60}" "$@" ${QUERIES:-}
}

tpch() {
  local status=0 contender name turn=0
  cores="${CORES:-16}"
  scale="${SCALE:-10}"
  tables="/dev/shm/zerohop-tpch-$scale"
  tpch="$(echo "$dir"/tpch-*.jar)"
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
      python3 "$dir/rapids/results.py" check "$dir/commit" "$out/gpu_tpch_check.json" "$out"/tpch_check_*.json ;;
    time)
      rm -f "$out/tpch.jsonl"
      for contender in ${CONTENDERS:-zerohop sort multithreaded}; do
        turn=$((turn + 1))
        ask "tpch_$turn-$contender" "$contender" time "$out/tpch.jsonl" "$contender" "${ROUNDS:-3}" || status=1
      done
      python3 "$dir/rapids/results.py" tpch "$dir/commit" "$out/gpu_tpch.json" "$out/tpch.jsonl" || status=1 ;;
    *) usage ;;
  esac
  return "$status"
}
