#!/usr/bin/env bash
# What becomes of plans that RAPIDS makes, with its own jar and without a GPU: kudo_plans.sh RAPIDS_JAR
# Needs a built tree (mvn -B -q -DskipTests package).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
opens=()
for package in java.lang java.lang.invoke java.io java.net java.nio java.util java.util.concurrent sun.nio.ch sun.util.calendar; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done
"${JAVA_HOME:+$JAVA_HOME/bin/}java" "${opens[@]}" -cp \
  "$(echo "$root"/plugin/target/zerohop-spark-*.jar):$1:$root/integration-tests/target/spark-home/conf:$root/integration-tests/target/spark-home/jars/*" \
  "$here/KudoPlans.java"
