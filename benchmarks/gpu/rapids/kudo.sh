# shellcheck shell=bash disable=SC2154
# RAPIDS' GPU serializer by itself, without Spark: what it costs beside other forms, and whether it is right,
# and whether cudf keeps the rules that our fake of it does.

kudo() {
  local status=0 run=(java -Xmx8g -cp "$zerohop:$rapids:$SPARK_HOME/jars/*") seconds="${LIMIT:-60}"
  export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"
  contract || status=1
  timeout -k 10 $((seconds + 60)) "${run[@]}" "$dir/rapids/SplitForms.java" "${TASKS:-16}" "$seconds" \
    2> "$out/forms.err" | grep '^{' > "$out/forms.jsonl" || status=1
  timeout -k 10 $((seconds + 60)) "${run[@]}" "$dir/rapids/KudoRounds.java" 8 "$seconds" 1 1000000 \
    2> "$out/rounds.err" | grep '^{' > "$out/rounds.jsonl" || status=1
  sanitized memcheck 4 5000 60 || status=1
  # Slow: two tasks took 15 s for 12 tables.
  sanitized racecheck 2 7000 24 || status=1
  grep -h '^seed' "$out"/*.err >&2 || true
  python3 "$dir/rapids/results.py" kudo "$dir/commit" "$out/gpu_kudo.json" "$out" || status=1
  return "$status"
}

# The tests of cudf's rules that the build runs with a fake of cudf, with cudf itself.
contract() {
  local status=0 gpu=io.zerohop.spark.rapids.gpu
  timeout -k 10 180 java -Xmx2g -cp "$dir/contract:$dir/contract/*:$zerohop:$rapids:$SPARK_HOME/jars/*" \
    "$dir/rapids/CudfContract.java" "$gpu.CudfContractTest" "$gpu.KudoContractTest" \
    2> "$out/contract.err" | grep '^{' > "$out/contract.jsonl" || status=1
  [ "$status" -eq 0 ] || tail -n 60 "$out/contract.err" >&2
  return "$status"
}

sanitized() { # tool, tasks, seed, rounds
  timeout -k 10 200 "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" --tool "$1" --target-processes all --error-exitcode 3 \
    "${run[@]}" "$dir/rapids/KudoRounds.java" "$2" 60 "$3" "$4" > "$out/$1.out" 2> "$out/$1.err"
}
