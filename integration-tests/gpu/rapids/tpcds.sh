# shellcheck shell=bash disable=SC2154
# TPC-DS with nothing set but what README names: compared with the CPU, or timed.

tpcds() {
  local status=0
  cores="${CORES:-16}"
  scale="${SCALE:-10}"
  tables="/dev/shm/zerohop-tpcds-$scale"
  generate_tpcds "$scale" "$tables"
  case "${MODE:-check}" in
    tables) ;;
    check) tpcds_check || status=1 ;;
    time) tpcds_time || status=1 ;;
    *) usage ;;
  esac
  return "$status"
}

# Each contender's rows and plans, beside the CPU's rows, which it is asked for meanwhile: nothing
# is timed here.
tpcds_check() {
  local status=0 contender cpu answers="$out/answers"
  rm -rf "$answers" "$out/tpcds_check.jsonl" "$out/tpcds_equal.jsonl"
  mkdir -p "$answers"
  if [ -d "$dir/answers/tpcds-$scale" ]; then
    cp -r "$dir/answers/tpcds-$scale" "$answers/cpu"
    cpu=
  else
    # shellcheck disable=SC2086
    on_cpu tpcds_check_cpu "${CPU_LIMIT:-560}" "${CPU_CORES:-$(($(nproc) / 2))}" "" io.zerohop.gpu.GpuQueryApp \
      tpcds "$tables" "$scale" 300 answers "$answers/cpu" ${QUERIES:-} &
    cpu=$!
  fi
  for contender in ${CONTENDERS:-zerohop zerohop+tight multithreaded}; do
    ask "tpcds_check_$contender" "$contender" "" tpcds time "$out/tpcds_check.jsonl" "$contender" "${ROUNDS:-0}" \
      "$answers/$contender" || status=1
  done
  [ -z "$cpu" ] || wait "$cpu" || status=1
  for contender in ${CONTENDERS:-zerohop zerohop+tight multithreaded}; do
    # shellcheck disable=SC2086
    java -cp "$tests:$dir/application-jars/*:$SPARK_HOME/jars/*" io.zerohop.gpu.AnswerComparison \
      tpcds "$answers/cpu" "$answers/$contender" "$out/tpcds_equal.jsonl" ${QUERIES:-} || status=1
  done
  python3 "$dir/rapids/results.py" tpcds_check "$dir/commit" "$out/gpu_tpcds_check.json" \
    "$out/tpcds_check.jsonl" "$out/tpcds_equal.jsonl" || status=1
  return "$status"
}

tpcds_time() {
  local status=0 contender turn=0 more=""
  [ -z "${PARTITIONS:-}" ] || more="--conf spark.sql.shuffle.partitions=$PARTITIONS"
  [ -n "${APPEND:-}" ] || rm -f "$out/tpcds.jsonl"
  for contender in ${CONTENDERS:-zerohop multithreaded}; do
    turn=$((turn + 1))
    ask "tpcds_$turn-$contender" "$contender" "$more" tpcds time "$out/tpcds.jsonl" "$contender" "${ROUNDS:-3}" - || status=1
  done
  python3 "$dir/rapids/results.py" tpcds "$dir/commit" "$out/gpu_tpcds.json" "$out/tpcds.jsonl" || status=1
  return "$status"
}
