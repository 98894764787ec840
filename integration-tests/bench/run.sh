#!/usr/bin/env bash
# Measures whole Spark jobs, and what UCX has between two nodes of one machine:
# run.sh host_job|growth|ucx_get [options]; --help after any lists them.
# Needs a built tree (mvn -B -q -DskipTests package) and memory for all clusters at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bench="${1:?host_job, growth or ucx_get}"
shift
run_dir="$(mktemp -d "${TMPDIR:-/tmp}/zerohop-bench-XXXXXX")"
child=
cleanup() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ -n "$child" ] && kill -0 "$child" 2>/dev/null; then
    kill -TERM "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  rm -rf "$run_dir" "/dev/shm/$(basename "$run_dir")"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

commit="$(git rev-parse HEAD)"
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit="$commit-dirty"
it=integration-tests/target
"${JAVA_HOME:+$JAVA_HOME/bin/}java" -Xmx256m \
  -cp "$(echo $it/zerohop-integration-tests-*.jar):$it/application-jars/*:$it/spark-home/conf:$it/spark-home/jars/*" \
  io.zerohop.bench.Bench "$bench" --commit "$commit" --project "$PWD" --run-dir "$run_dir" "$@" &
child=$!
wait "$child"
