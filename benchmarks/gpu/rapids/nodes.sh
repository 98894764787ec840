# shellcheck shell=bash disable=SC2154
# Executors that read each other as if each were on a node of its own, by UCX.

nodes() {
  local status=0 library
  local some="group_by_string group_by_many nested inner_join window count_of_nothing"
  rm -f "$out/bench.jsonl" "$out/peers.jsonl"
  for library in ${LIBUCX:?folders with lib/libucp.so.0, one for each libucx that is to be tried}; do
    UCX="$library"
    # shellcheck disable=SC2086 # These are several words.
    compare "$(basename "$library")" "$(as_nodes)" 500000 ucx $some || status=1
    grep -h 'is read by UCX' "$out/$(basename "$library").executors.err" | sed 's/.*PeerConnector: //' |
      python3 -c 'import json, sys
for line in sys.stdin: print(json.dumps({"run": sys.argv[1], "case": "peer", "line": line.strip()}))' "$(basename "$library")" |
      tee -a "$out/peers.jsonl"
  done
  # The first library is the one to be timed, beside the same executors as what they are.
  UCX="${LIBUCX%% *}"
  cores="${CORES:-16}"
  exchanges "${CONTENDERS:-zerohop+nodes zerohop}" "${QUERIES:-64:repartition:${ROUNDS:-5}:80}" || status=1
  # shellcheck disable=SC2046,SC2086 # These are several words.
  python3 "$dir/rapids/results.py" nodes "$dir/commit" "$out/gpu_nodes.json" "$out/peers.jsonl" "$out/bench.jsonl" \
    $(for library in $LIBUCX; do echo "$out/$(basename "$library").json"; done)
  return "$status"
}

# Settings for it; RAPIDS sets none of UCX's, and neither does the user.
as_nodes() {
  echo "--conf spark.zerohop.paths=local,ucx,staged --conf spark.zerohop.ucx.trustedNetwork=true
    --conf spark.executorEnv.LD_LIBRARY_PATH=$UCX/lib:${LD_LIBRARY_PATH:-}"
}
