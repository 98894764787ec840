# shellcheck shell=bash disable=SC2154
# Whether a segment that leaves GPU memory is worth compressing on the GPU, by RAPIDS' nvCOMP, without Spark.

tiers() {
  local status=0 seconds="${LIMIT:-90}"
  export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"
  timeout -k 10 $((seconds + 60)) java -Xmx4g -cp "$zerohop:$rapids:$SPARK_HOME/jars/*" \
    "$dir/rapids/TierForms.java" "$seconds" 2> "$out/tiers.err" | grep '^{' > "$out/tiers.jsonl" || status=1
  [ "$status" -eq 0 ] || tail -n 30 "$out/tiers.err" >&2
  python3 "$dir/rapids/results.py" tiers "$dir/commit" "$out/gpu_tiers.json" "$out/tiers.jsonl" || status=1
  return "$status"
}
