#!/usr/bin/env bash
# Runs what only a GPU can show: the Device contract and fault tests, and the benchmarks. What needs
# Spark too is rapids.sh.
#
#   run.sh pack DIR           collects everything into DIR (at most 60 MiB); needs the built tree
#   run.sh test PACK OUT      the test suites on this GPU host; JUnit XML in OUT
#   run.sh bench PACK OUT [gather|alltoall|signal|host_link]
#                             the benchmarks; one JSON file each in OUT
#   run.sh sanitize PACK OUT  the contract suite under compute-sanitizer; needs a CUDA toolkit
#
# The GPU host needs a driver and nothing else: DIR holds a Java run time. Copy DIR there, with this
# script in it, and run it there.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
usage() {
  sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}

pack() {
  local out="$1" root native
  root="$(cd "$here/../.." && pwd)"
  native="$root/native/target"
  [ -f "$native/classes/io/zerohop/device/lib/zerohop.fatbin" ] ||
    {
      echo "no kernels in $native/classes: build with nvcc first (mvn -B -DskipTests package)" >&2
      exit 1
    }
  rm -rf "$out"
  mkdir -p "$out/lib"
  cp -r "$native/classes" "$out/classes"
  cp -r "$native/test-classes" "$out/test-classes"
  cp -r "$root/benchmarks/micro/target/classes" "$out/bench-classes"
  (cd "$root" && mvn -B -q -pl native dependency:copy-dependencies -DincludeScope=test \
    -DoutputDirectory="$out/lib" -Dmdep.prependGroupId=false)
  mvn -B -q dependency:copy -Dartifact=org.junit.platform:junit-platform-console-standalone:1.13.4 \
    -DoutputDirectory="$out/lib" -Dmdep.stripVersion=true
  rm -f "$out"/lib/junit-jupiter* "$out"/lib/junit-platform-[elc]*[0-9].jar "$out"/lib/opentest4j* "$out"/lib/apiguardian*
  # Of JCuda's libraries only the driver's binding is used.
  (cd "$out" && unzip -q -o lib/jcuda-natives-*.jar 'lib/libJCudaDriver-*' -d classes && rm lib/jcuda-natives-*.jar)
  "${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v jlink)")")")}/bin/jlink" \
    --add-modules java.base,java.logging,java.management,java.xml,jdk.unsupported,jdk.zipfs \
    --compress=2 --no-header-files --no-man-pages --strip-debug --output "$out/jre"
  git -C "$root" rev-parse HEAD > "$out/commit"
  [ -z "$(git -C "$root" status --porcelain --untracked-files=no)" ] || sed -i 's/$/-dirty/' "$out/commit"
  cp "${BASH_SOURCE[0]}" "$here/yardsticks.py" "$here/../scripts/measurements.py" "$out/"
  du -sm "$out" | cut -f1 | {
    read -r size
    echo "$out: $size MiB"
    [ "$size" -le 60 ]
  }
}

class_path() { echo "$1/classes:$1/test-classes:$1/bench-classes:$(find "$1/lib" -name '*.jar' | tr '\n' ':')"; }

# The counts of all suites in OUT as one line of JSON each, behind what they ran on.
summary() { # name, out, commit
  local name="$1" out="$2"
  {
    printf '{"bench": "%s", "commit": "%s", "date": "%s",\n "host": {"gpu": "%s", "gpus": %s, "driver": "%s"},\n "rows": [\n' \
      "$name" "$3" "$(date -u +%F)" "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)" \
      "$(nvidia-smi -L | wc -l)" "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)"
    for xml in "$out"/*/TEST-junit-jupiter.xml; do
      grep -m1 -o '<testsuite [^>]*' "$xml" |
        sed -E 's/.* tests="([0-9]+)" skipped="([0-9]+)" failures="([0-9]+)" errors="([0-9]+)".*/"tests": \1, "skipped": \2, "failures": \3, "errors": \4},/' |
        sed "s/^/  {\"case\": \"$(basename "$(dirname "$xml")")\", /"
    done | sed '$s/,$//'
    printf ' ]}\n'
  } > "$out/$name.json"
}

suite() { # name, pack, out, console options ...
  local name="$1" pack="$2" out="$3"
  shift 3
  timeout -k 10 "${SUITE_LIMIT:-240}" "$pack/jre/bin/java" -Xmx2g -cp "$(class_path "$pack")" \
    org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=summary \
    --reports-dir "$out/$name" "$@" 2>&1 | tail -60
}

case "${1:-}" in
  pack)
    [ $# -eq 2 ] || usage
    mkdir -p "$2"
    pack "$(cd "$2" && pwd)"
    ;;
  test)
    [ $# -eq 3 ] || usage
    status=0
    # The binding's contract is held to sources and a stand-in for the driver, by the build.
    all=(--scan-classpath "$2/test-classes" --include-package io.zerohop.device.cuda
      --exclude-classname '.*BindingContractTest')
    # Both processes on one GPU; then each with a GPU of its own, and blind to the other's.
    CUDA_VISIBLE_DEVICES=0 suite one-gpu "$2" "$3" "${all[@]}" || status=$?
    if [ "$(nvidia-smi -L | wc -l)" -gt 1 ]; then
      CUDA_VISIBLE_DEVICES=0 ZEROHOP_PEER_DEVICES=1 suite two-gpus "$2" "$3" "${all[@]}" || status=$?
    fi
    summary gpu_tests "$3" "$(cat "$2/commit")"
    exit "$status"
    ;;
  bench)
    [ $# -ge 3 ] || usage
    mkdir -p "$3"
    link="$(nvidia-smi topo -m 2> /dev/null | awk '$1 == "GPU0" && $3 ~ /^[A-Z]/ { print $3 }')"
    driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)"
    timeout -k 10 "${BENCH_LIMIT:-300}" "$2/jre/bin/java" -Xmx4g -cp "$(class_path "$2")" \
      io.zerohop.device.cuda.CudaBench "$(cat "$2/commit")" "$3" "$driver" "${link:-none}" "${4:-all}"
    if python3 -c 'import torch' 2> /dev/null; then
      timeout -k 10 "${BENCH_LIMIT:-300}" python3 -u "$(dirname "${BASH_SOURCE[0]}")/yardsticks.py" "$3"
    else
      echo "no PyTorch here: no rows of NCCL"
    fi
    ;;
  sanitize)
    [ $# -eq 3 ] || usage
    mkdir -p "$3"
    # Under the tool a launch returns when the kernel has ended, so a test of what happens before
    # that cannot run. Ten thousand mappings are not about kernels.
    waits='.*(synchronizeHasALimit|mappingTen).*'
    status=0
    for tool in memcheck racecheck synccheck; do
      timeout -k 10 "${SUITE_LIMIT:-240}" compute-sanitizer --tool "$tool" --target-processes all --report-api-errors no \
        --error-exitcode 99 "$2/jre/bin/java" -Xmx2g -cp "$(class_path "$2")" \
        org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=summary \
        --reports-dir "$3/$tool" --select-class io.zerohop.device.cuda.CudaDeviceTest \
        --exclude-methodname "$waits" > "$3/$tool.txt" 2>&1 ||
        {
          status=$?
          echo "$tool: exit $status"
        }
      grep -E "ERROR SUMMARY|RACECHECK SUMMARY|tests (successful|failed)" "$3/$tool.txt" | sort | uniq -c
    done
    summary gpu_sanitize "$3" "$(cat "$2/commit")"
    exit "$status"
    ;;
  *) usage ;;
esac
