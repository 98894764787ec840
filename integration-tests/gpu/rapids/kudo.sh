# shellcheck shell=bash disable=SC2154
# RAPIDS' GPU serializer by itself, without Spark: what it costs beside other forms, and whether it is right.

kudo() {
  local status=0 run=(java -Xmx8g -cp "$rapids:$SPARK_HOME/jars/*") seconds="${LIMIT:-60}"
  export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"
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

sanitized() { # tool, tasks, seed, rounds
  timeout -k 10 200 "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" --tool "$1" --target-processes all --error-exitcode 3 \
    "${run[@]}" "$dir/rapids/KudoRounds.java" "$2" 60 "$3" "$4" > "$out/$1.out" 2> "$out/$1.err"
}
