#!/usr/bin/env bash
# Measures whole Spark jobs: run.sh host_job|tpcds|growth [options], the same between two nodes that
# this machine plays: run.sh between [options], how fast map outputs go to files: run.sh spill
# [options], and what UCX has between two such nodes: run.sh ucx_get [options]; --help after any of
# them lists those.
# Needs a built tree (mvn -B -q -DskipTests package) and memory for all clusters at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bench="${1:?host_job, tpcds, between, growth, spill or ucx_get}"
shift
run_dir="$(mktemp -d "${TMPDIR:-/tmp}/zerohop-bench-XXXXXX")"
child=
cleanup() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ -n "$child" ] && kill -0 "$child" 2> /dev/null; then
    kill -TERM "$child" 2> /dev/null || true
    wait "$child" 2> /dev/null || true
  fi
  rm -rf "$run_dir" "/dev/shm/$(basename "$run_dir")"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

commit="$(git rev-parse HEAD)"
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit="$commit-dirty"
built=benchmarks/spark/target
java_options=(-Xmx256m)
# It runs Spark in its own process, where the others start clusters.
[ "$bench" != spill ] || java_options=(-Xmx1g @benchmarks/spark/java.options)
"${JAVA_HOME:+$JAVA_HOME/bin/}java" "${java_options[@]}" \
  -cp "$(echo $built/zerohop-benchmarks-spark-*.jar):$(echo plugin/target/zerohop-spark-*.jar):$built/application-jars/*:$built/spark-home/conf:$built/spark-home/jars/*" \
  io.zerohop.bench.Bench "$bench" --commit "$commit" --project "$PWD" --run-dir "$run_dir" "$@" &
child=$!
wait "$child"
