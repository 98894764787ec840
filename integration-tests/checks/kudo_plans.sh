#!/usr/bin/env bash
# What becomes of plans that RAPIDS makes, with its own jar and without a GPU: kudo_plans.sh RAPIDS_JAR
# Needs a built tree (mvn -B -q -DskipTests package).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
"${JAVA_HOME:+$JAVA_HOME/bin/}java" @"$root/benchmarks/spark/java.options" -cp \
  "$(echo "$root"/plugin/target/zerohop-spark-*.jar):$1:$root/benchmarks/spark/target/spark-home/conf:$root/benchmarks/spark/target/spark-home/jars/*" \
  "$here/KudoPlans.java"
