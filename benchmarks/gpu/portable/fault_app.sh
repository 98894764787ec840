#!/usr/bin/env bash
# Compiles the driver program of the fault suites for another Spark and Scala than the build's, into
# OUT/SPARK_SCALA.jar: what its classes call differs between them. Needs the built tree and Maven.
#
#   fault_app.sh OUT SPARK_HOME SPARK_SCALA   as 3.5.8_2.12
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[ $# -eq 3 ] || {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}
root="$(cd "$here/../../.." && pwd)"
mkdir -p "$1"
out="$(cd "$1" && pwd)" home="$(cd "$2" && pwd)" name="$3" scala="${3#*_}"
sources="$root/integration-tests/src/test/scala"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

version="$(basename "$home"/jars/scala-library-"$scala".*.jar .jar)"
sed -e "s/@version@/${version#scala-library-}/" -e "s/@scala@/$scala/" "$here/scala.xml" > "$work/pom.xml"
mvn -B -q -f "$work/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$work/lib"
mkdir "$work/classes"
files=("$sources"/org/apache/spark/zerohop/SparkInternals.scala)
for file in gpu/{GpuTestApp,Cancellation,ClusterScenarios,Exchanges,FaultScenarios,FaultyQuery,GpuDamage,HeldOwner,Moment,QueryScenarios,Questions} \
  support/{Bounded,Cluster,ExecutorMemory,Facts,Holdings,Leftover,PathBytes,ScenarioServer,Survivors,Watchdog} \
  faults/{Fault,Workload}; do
  files+=("$sources/io/zerohop/spark/$file.scala")
done
jars="$(echo "$root"/plugin/target/zerohop-spark-*.jar "$root"/benchmarks/spark/target/zerohop-benchmarks-spark-*.jar "$home"/jars/*.jar "$work"/lib/*.jar)"
java -cp "$work/lib/*" scala.tools.nsc.Main -nowarn -cp "${jars// /:}" -d "$work/classes" "${files[@]}"
# What 2.12 has not of its own goes along.
for jar in "$work"/lib/scala-collection-compat_*.jar; do
  (cd "$work/classes" && unzip -q -o "$jar" 'scala/*')
done
"${JAVA_HOME:+$JAVA_HOME/bin/}jar" --create --file "$out/$name.jar" -C "$work/classes" .
