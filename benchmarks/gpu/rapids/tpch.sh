# shellcheck shell=bash disable=SC2154
# TPC-H, compared with the CPU or timed.

tpch() {
  local status=0 contender name turn=0 shuffled result
  cores="${CORES:-16}"
  scale="${SCALE:-10}"
  tables="/dev/shm/zerohop-tpch-$scale"
  shuffled="${PARTITIONS:+$no_broadcasts --conf spark.sql.shuffle.partitions=$PARTITIONS}"
  result="${RESULT:-gpu_tpch}"
  generate io.zerohop.workload.TpchData "$scale" "$tables"
  case "${MODE:-check}" in
    tables) ;;
    check)
      rm -f "$out"/tpch_check_*.json
      for contender in ${CONTENDERS:-zerohop}; do
        name="tpch_check_$contender"
        ask "$name" "$contender" "$shuffled" tpch check "$dir/answers/$scale" "$out/$name.json" || status=1
        grep -vE '"equal":true.*"staged_bytes":0' "$out/$name.out" | cut -c1-300 | sed "s/^/$contender: /" || true
      done
      python3 "$dir/rapids/results.py" check "$dir/commit" "$out/gpu_tpch_check.json" "$out"/tpch_check_*.json
      ;;
    time)
      [ -n "${APPEND:-}" ] || rm -f "$out/tpch.jsonl"
      for contender in ${CONTENDERS:-zerohop sort multithreaded}; do
        turn=$((turn + 1))
        ask "tpch_$turn-$contender" "$contender" "$shuffled" tpch time "$out/tpch.jsonl" "$contender" "${ROUNDS:-3}" - || status=1
      done
      python3 "$dir/rapids/results.py" tpch "$dir/commit" "$out/$result.json" "$out/tpch.jsonl" || status=1
      ;;
    *) usage ;;
  esac
  return "$status"
}
