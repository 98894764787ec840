#!/usr/bin/env bash
# Binds Zerohop against the real classes of each cell of the matrix, without a GPU:
#
#   rapids_cells.sh OUT [CELL...]        (CELL: RAPIDS-cudaN/SPARK, as in 26.08.1-cuda13/4.1.3; all without any)
#
# Leaves OUT/rows.jsonl, for benchmarks/scripts/compatibility.py, and OUT/CELL.signatures.
# Needs a built tree (mvn -B -q -DskipTests package), Maven's way to its registry, and python3. A cell's jar has half
# a gigabyte to one; its classes for the cells' versions of Spark are cut out into RAPIDS_CACHE
# (~/.cache/zerohop-rapids, 90 MB a jar at most) and the jar is deleted, unless RAPIDS_KEEP=1 or it was there before.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
out="$(mkdir -p "$1" && cd "$1" && pwd)"
shift
matrix="$root/plugin/src/main/resources/io/zerohop/spark/rapids/compatibility.json"
cache="${RAPIDS_CACHE:-$HOME/.cache/zerohop-rapids}"
mkdir -p "$cache"
copy=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

# The released poms name parents that were never released: empty ones take their place, in a folder of their own.
parents() { # SCALA VERSION
  for parent in rapids-4-spark-parent rapids-4-spark-jdk-profiles; do
    mkdir -p "$cache/parents/$parent-$1-$2"
    cat > "$cache/parents/$parent-$1-$2/pom.xml" << POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>com.nvidia</groupId><artifactId>${parent}_$1</artifactId><version>$2</version><packaging>pom</packaging></project>
POM
    mvn -q -B -f "$cache/parents/$parent-$1-$2/pom.xml" install
  done
}

cut_jar() { # SCALA VERSION CUDA JAR
  local artifact="rapids-4-spark_$1" classifier="cuda$3"
  local repository
  repository="$(mvn -q -B org.apache.maven.plugins:maven-help-plugin:3.5.1:evaluate \
    -Dexpression=settings.localRepository -DforceStdout | sed 's/\x1b\[[0-9;]*m//g')"
  local whole="$repository/com/nvidia/$artifact/$2/$artifact-$2-$classifier.jar" had=1
  if [ ! -f "$whole" ]; then
    had=0
    parents "$1" "$2"
    mvn -q -B $copy:get -Dartifact="com.nvidia:$artifact:$2:jar:$classifier" -Dtransitive=false
  fi
  python3 - "$matrix" "$whole" "$4" "$2" << 'PY'
import json, os, re, sys, zipfile
matrix, whole, to, version = sys.argv[1:]
shims = {cell["shim"] for cell in json.load(open(matrix))["cells"] if cell["rapids"] == version}
with zipfile.ZipFile(whole) as source, zipfile.ZipFile(to + ".part", "w", zipfile.ZIP_DEFLATED) as target:
    for name in dict.fromkeys(source.namelist()):
        top = name.split("/")[0]
        if not name.endswith((".so", "/")) and (not re.match(r"spark\d", top) or top in shims):
            target.writestr(zipfile.ZipInfo(name), source.read(name))
os.rename(to + ".part", to)
PY
  [ $had = 1 ] || [ "${RAPIDS_KEEP:-0}" = 1 ] || rm -f "$whole"
}

spark_jars() { # SCALA VERSION FOLDER
  mkdir -p "$3.part"
  cat > "$3.part/pom.xml" << POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>cells</groupId><artifactId>cells</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.spark</groupId><artifactId>spark-sql_$1</artifactId><version>$2</version></dependency></dependencies>
</project>
POM
  mvn -q -B -f "$3.part/pom.xml" $copy:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars
  mv "$3.part" "$3"
}

zerohop="$(find "$root/plugin/target" -maxdepth 1 -name 'zerohop-spark-*.jar' ! -name '*-sources.jar' \
  ! -name '*-javadoc.jar')"
: > "$out/rows.jsonl"
status=0
while read -r rapids scala cuda spark; do
  cell="$rapids-cuda$cuda/$spark"
  [ $# = 0 ] || [[ " $* " == *" $cell "* ]] || continue
  jar="$cache/rapids-4-spark_$scala-$rapids-cuda$cuda.jar"
  jars="$cache/spark-$spark-$scala"
  [ -f "$jar" ] || cut_jar "$scala" "$rapids" "$cuda" "$jar"
  [ -d "$jars" ] || spark_jars "$scala" "$spark" "$jars"
  log="$out/${cell//\//_}.log"
  "${JAVA_HOME:+$JAVA_HOME/bin/}java" @"$root/benchmarks/spark/java.options" -cp "$zerohop:$jar:$jars/jars/*" \
    "$here/RapidsBind.java" "$scala" "$cuda" > "$log" 2>&1 || true
  sed -n 's/^SIGNATURE //p' "$log" > "$out/${cell//\//_}.signatures"
  if grep '^ROW ' "$log" | sed 's/^ROW //' | tee -a "$out/rows.jsonl" | grep -q '"bound": true'; then
    echo "ok    $cell"
  else
    echo "WRONG $cell, see $log"
    status=1
  fi
done < <(python3 -c '
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    print(cell["rapids"], cell["scala"], cell["cuda"], cell["spark"])' "$matrix")
exit $status
