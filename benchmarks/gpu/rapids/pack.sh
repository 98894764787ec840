# shellcheck shell=bash disable=SC2154
# What a GPU host needs of the built tree.

pack() {
  local out="$1" root
  root="$(cd "$here/../.." && pwd)"
  mkdir -p "$out"
  rm -rf "${out:?}"/*
  cp "$root"/plugin/target/zerohop-spark-*.jar "$root"/benchmarks/spark/target/zerohop-benchmarks-spark-*.jar \
    "$here/rapids.sh" "$here/../spark/java.options" "$out/"
  mkdir "$out/rapids" "$out/suites"
  cp -r "$root/benchmarks/spark/target/application-jars" "$out/"
  cp "$here"/rapids/*.* "$root"/benchmarks/scripts/{charts,samples,kills,measurements,operators}.py "$out/rapids/"
  cp "$root"/integration-tests/target/suite-jars/*.jar "$out/suites/"
  # The suites' own, where the kit's Spark has another Scala.
  cp "$root"/benchmarks/spark/target/spark-home/jars/scala-{library-,xml_}*.jar "$out/suites/"
  # The Spark that they are built with, as 4.1_2.13.
  basename "$root"/benchmarks/spark/target/spark-home/jars/spark-core_*.jar |
    sed -E 's/spark-core_([0-9.]+)-([0-9]+\.[0-9]+)\..*/\2_\1/' > "$out/suites/spark"
  # Of fault_app.sh, for other Sparks than the build's.
  [ ! -d "$root/benchmarks/spark/target/fault-apps" ] || cp -r "$root/benchmarks/spark/target/fault-apps" "$out/"
  cp "$root"/integration-tests/target/zerohop-integration-tests-*-tests.jar "$out/suites/suites.jar"
  # Tests that run with cudf itself, without the fake of it that lies beside them.
  local gpu=io/zerohop/spark/rapids/gpu
  mkdir -p "$out/contract/$gpu"
  cp "$root/plugin/target/test-classes/$gpu"/{CudfContractTest,KudoContractTest,GpuTables}*.class "$out/contract/$gpu/"
  (cd "$root" && mvn -B -q dependency:copy -Dartifact=org.junit.platform:junit-platform-console-standalone:1.13.4 \
    -DoutputDirectory="$out/contract" -Dmdep.stripVersion=true -pl .)
  [ ! -d "$root/benchmarks/spark/target/answers" ] || cp -r "$root/benchmarks/spark/target/answers" "$out/"
  git -C "$root" rev-parse HEAD > "$out/commit"
  [ -z "$(git -C "$root" status --porcelain --untracked-files=no)" ] || sed -i 's/$/-dirty/' "$out/commit"
}
