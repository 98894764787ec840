# shellcheck shell=bash disable=SC2154
# The demo's queries without RAPIDS.

rows() {
  lay_out
  timeout -k 10 "${LIMIT:-300}" java -Xmx512m \
    -cp "$tests:$built/application-jars/*:$SPARK_HOME/jars/*" \
    io.zerohop.bench.Bench host_job --commit "$(cat "$dir/commit")" --project "$project" --run-dir "$project/run" \
    --scale 0.2 --quick-scale 0.2 --iterations 0 --contenders zerohop,sort --executor-cores 4 \
    --conf spark.zerohop.test.device=cuda --out "$project/spark.json"
  python3 "$dir/rapids/results.py" rows "$dir/commit" "$out/gpu_spark.json" "$project/spark.json"
  rm -rf "$project"
  ! grep -q '"staged_bytes": [1-9]' "$out/gpu_spark.json" || {
    echo "some blocks were staged" >&2
    return 1
  }
}
