#!/usr/bin/env bash
# Collects what rapids.sh needs beside our own jars, on a machine with a network and GPUs.
#
#   kit.sh DIR    DIR gets jre17 (JAVA_HOME), spark (the built tree's) and rapids.jar
#
# rapids.jar is RAPIDS_JAR if that is set; otherwise Maven fetches it once (about 600 MB) for the CUDA
# version of the driver, or the one in CUDA (12 or 13).
set -euo pipefail

version=26.08.1
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

# The released pom names a parent that was never released, and Maven resolves nothing without it: an
# empty one stands in for it, in a repository of this folder's own.
fetch() { # classifier
  local repository="$dir/repository" artifact=com.nvidia:rapids-4-spark_2.13
  local parent="$repository/com/nvidia/rapids-4-spark-parent_2.13/$version"
  mkdir -p "$parent"
  cat > "$parent/rapids-4-spark-parent_2.13-$version.pom" << POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.nvidia</groupId>
  <artifactId>rapids-4-spark-parent_2.13</artifactId>
  <version>$version</version>
  <packaging>pom</packaging>
</project>
POM
  mvn -B -q -Dmaven.repo.local="$repository" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get \
    -Dartifact="$artifact:$version:jar:$1" -Dtransitive=false
  ln -sfn "$repository/com/nvidia/rapids-4-spark_2.13/$version/rapids-4-spark_2.13-$version-$1.jar" "$dir/rapids.jar"
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
  echo "fetching the RAPIDS Accelerator $version for CUDA $cuda (about 600 MB) ..."
  fetch "cuda$cuda"
fi
