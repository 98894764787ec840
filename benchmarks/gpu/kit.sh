#!/usr/bin/env bash
# Collects what rapids.sh needs beside our own jars, on a machine with a network and GPUs.
#
#   kit.sh DIR    DIR gets jre17 (JAVA_HOME), spark (the built tree's) and rapids.jar
#
# rapids.jar is RAPIDS_JAR if that is set; otherwise Maven fetches it once (about 600 MB) for the CUDA
# version of the driver, or the one in CUDA (12 or 13).
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
[ $# -eq 1 ] || {
  sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}
mkdir -p "$1"
dir="$(cd "$1" && pwd)"

cuda_of_driver() {
  nvidia-smi 2> /dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p' | head -n 1 || true
}

fetch() { # CUDA version
  (cd "$root" && mvn -B -q -pl integration-tests -Drapids.cuda="$1" dependency:copy@rapids)
  ln -sfn "$(echo "$root"/integration-tests/target/rapids/*-cuda"$1".jar)" "$dir/rapids.jar"
}

ln -sfn "${JAVA_HOME:?set it to a JDK 17}" "$dir/jre17"
ln -sfn "$root/benchmarks/spark/target/spark-home" "$dir/spark"
if [ -n "${RAPIDS_JAR:-}" ]; then
  [ -f "$RAPIDS_JAR" ] || {
    echo "RAPIDS_JAR=$RAPIDS_JAR is no file" >&2
    exit 1
  }
  ln -sfn "$(readlink -f "$RAPIDS_JAR")" "$dir/rapids.jar"
elif [ ! -e "$dir/rapids.jar" ]; then
  cuda="${CUDA:-$(cuda_of_driver)}"
  [ -n "$cuda" ] || {
    echo "no CUDA driver was found (nvidia-smi); set CUDA to 12 or 13" >&2
    exit 1
  }
  echo "fetching the RAPIDS Accelerator for CUDA $cuda (about 600 MB) ..."
  fetch "$cuda"
fi
