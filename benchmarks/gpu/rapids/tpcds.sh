# shellcheck shell=bash disable=SC2154
# TPC-DS with nothing set but what README names: compared with the CPU, or timed.

tpcds() {
  local status=0 mode="${MODE:-check}"
  cores="${CORES:-16}"
  scale="${SCALE:-10}"
  tables="/dev/shm/zerohop-tpcds-$scale"
  known="$dir/answers/tpcds-$scale"
  answers="$out/answers"
  runs="$out/tpcds.jsonl"
  [ "$mode" = report ] || tpcds_tables
  [ -n "${APPEND:-}" ] || [ "$mode" = report ] || rm -rf "$runs" "$answers" "$out/killed.jsonl" "$out/session.jsonl"
  case "$mode" in
    tables) ;;
    answers) tpcds_answers || status=1 ;;
    check) tpcds_check || status=1 ;;
    time) tpcds_run "${CONTENDERS:-zerohop multithreaded${KILL_EVERY:+ zerohop+killed multithreaded+killed}}" "${ROUNDS:-3}" || status=1 ;;
    report) ;;
    *) usage ;;
  esac
  case "$mode" in check | time | report) tpcds_report || status=1 ;; esac
  return "$status"
}

tpcds_tables() {
  if [ -z "${DSDGEN:-}" ]; then
    generate io.zerohop.workload.TpcdsData "$scale" "$tables"
  elif [ ! -d "$tables" ]; then
    rm -rf "$tables.new"
    timeout "${GENERATE_LIMIT:-500}" python3 "$dir/rapids/tpcds_tables.py" "$DSDGEN" "$scale" "$tables.new" || return 1
    mv "$tables.new" "$tables"
  fi
}

# A job that writes tables made of those of TPC-DS, timed.
etl() {
  local status=0 contender turn=0
  cores="${CORES:-16}"
  scale="${SCALE:-10}"
  tables="/dev/shm/zerohop-tpcds-$scale"
  tpcds_tables || return 1
  [ -n "${APPEND:-}" ] || rm -f "$out/etl.jsonl"
  for contender in ${CONTENDERS:-zerohop multithreaded}; do
    turn=$((turn + 1))
    ask "etl_$turn-$contender" "$contender" "" etl time "$out/etl.jsonl" "$contender" "${ROUNDS:-3}" - || status=1
    rm -rf "$tables-etl"
  done
  python3 "$dir/rapids/results.py" etl "$dir/commit" "$out/gpu_etl.json" "$out/etl.jsonl" || status=1
  return "$status"
}

# The CPU's rows, by some applications at once, since one query does not keep all cores busy.
tpcds_answers() {
  local status=0 apps="${CPU_APPS:-4}" pids=() app queries
  mkdir -p "$known"
  # shellcheck disable=SC2206 # These are several words.
  queries=(${QUERIES:-$(tpcds_queries)})
  for app in $(seq 0 $((apps - 1))); do
    local share=() i
    for ((i = app; i < ${#queries[@]}; i += apps)); do share+=("${queries[i]}"); done
    [ "${#share[@]}" -gt 0 ] || continue
    CPU_MEMORY="${CPU_MEMORY:-12g}" on_cpu "tpcds-cpu-$app" "${CPU_LIMIT:-560}" "${CPU_CORES:-$(($(nproc) / apps))}" "" \
      io.zerohop.gpu.GpuQueryApp tpcds "$tables" "$scale" 300 answers "$known" "${share[@]}" &
    pids+=($!)
  done
  for app in "${pids[@]}"; do wait "$app" || status=1; done
  echo "the CPU answered $(find "$known" -name '*.gz' | wc -l) of ${#queries[@]} in $SECONDS s since the start"
  return "$status"
}

# The names of all queries, as our jar has them.
tpcds_queries() {
  python3 -c 'import re, sys, zipfile
print(*sorted(re.findall(r"^tpcds/(.*)\.sql$", "\n".join(zipfile.ZipFile(sys.argv[1]).namelist()), re.M)))' "$tests"
}

# Each contender's rows and plans. The CPU is asked for its rows meanwhile, if they are not known:
# nothing is to be timed here.
tpcds_check() {
  local status=0 cpu=
  if [ ! -d "$known" ]; then
    tpcds_answers &
    cpu=$!
  fi
  tpcds_run "${CONTENDERS:-zerohop zerohop+tight multithreaded}" "${ROUNDS:-0}" || status=1
  [ -z "$cpu" ] || wait "$cpu" || status=1
  return "$status"
}

tpcds_run() { # contenders, rounds after the first
  local status=0 contender turn=0 partitions
  for partitions in ${PARTITIONS:-default}; do
    for contender in $1; do
      turn=$((turn + 1))
      ask "tpcds-$turn-$contender" "$contender" "$([ "$partitions" = default ] || echo "--conf spark.sql.shuffle.partitions=$partitions")" \
        tpcds time "$runs" "$contender" "$2" "$answers/$contender" || status=1
    done
  done
  return "$status"
}

# What all runs in OUT have shown: rows beside the CPU's, plans beside one another, times.
tpcds_report() {
  local status=0 folder
  rm -f "$out/tpcds_equal.jsonl"
  for folder in "$answers"/*; do
    [ ! -d "$known" ] || java -cp "$tests:$dir/application-jars/*:$SPARK_HOME/jars/*" io.zerohop.gpu.AnswerComparison \
      tpcds "$known" "$folder" "$out/tpcds_equal.jsonl" >> "$out/tpcds_equal.out" || true
  done
  if [ -f "$out/killed.jsonl" ]; then
    rm -f "$out/kills.json"
    python3 "$dir/rapids/kills.py" "$out/kills.json" "$dir/commit" "$out" || status=1
  fi
  # Where nobody knows the CPU's rows there is nothing to compare with: what is timed has checksums.
  [ ! -d "$known" ] || python3 "$dir/rapids/results.py" tpcds_check "$dir/commit" "$out/gpu_tpcds_check.json" "$runs" "$out/tpcds_equal.jsonl" || status=1
  python3 "$dir/rapids/results.py" tpcds "$dir/commit" "$out/gpu_tpcds.json" "$runs" || status=1
  [ ! -f "$out/session.jsonl" ] || python3 "$dir/rapids/results.py" session "$dir/commit" "$out/gpu_session.json" "$out/session.jsonl" || status=1
  return "$status"
}
