#!/usr/bin/env bash
# Runs the unit tests of `native` and one Spark job on an emulated arm64.
#   arm64.sh FOLDER                 what `mvn -B verify -Parm64` runs; needs the packaged tree
#   arm64.sh FOLDER units [OPTION ...]   the tests alone; options of JUnit's console select among them
#   arm64.sh FOLDER job             the job alone
# FOLDER keeps an arm64 Java for the next time, and what the runs have written. Only the processes
# are emulated (qemu-user): the kernel, the files and the C compiler are this machine's, so futexes,
# memfd and sockets are those of the kernel, and the order of memory accesses is x86-64's. The kernel
# learns of the emulator in a user namespace of this run alone (Linux 6.7 and later). Installs the
# emulator and the compiler if it is root's.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
project="$(cd "$here/../.." && pwd)"
packages=(openjdk-17-jre-headless libc6 libgcc-s1 libstdc++6 zlib1g)
unit_seconds=1500 job_seconds=900

# Thousands of damaged inputs to parsers that are Java alone: nothing of it is the processor's.
left_out='.*FuzzTest'

fail() {
  printf 'arm64: %s\n' "$1" >&2
  exit 1
}

install() {
  local missing=() tool package
  while read -r tool package; do
    command -v "$tool" > /dev/null || missing+=("$package")
  done << 'END'
qemu-aarch64-static qemu-user-static
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
END
  [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
  [ "${#missing[@]}" -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || fail "missing: ${missing[*]}"
  echo "arm64: installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# The files of an arm64 Java and of the libraries that it wants, from Debian's packages, by lists of
# packages of its own. Nothing is installed: no script of a package runs, and it needs no root.
make_root() {
  local root="$1" state="$1.apt" link file apt
  [ ! -e "$root/made" ] || return 0
  rm -rf --one-file-system "$root" "$state"
  mkdir -p "$root/usr/lib" "$state/lists/partial" "$state/cache/archives/partial" "$state/all"
  apt=(apt-get -q -o "Dir::State=$state" -o Dir::State::status=/dev/null -o "Dir::Cache=$state/cache"
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none
    -o "APT::Sandbox::User=$(id -un)")
  { "${apt[@]}" update && (cd "$state" && "${apt[@]}" download "${packages[@]}"); } > "$root.log" 2>&1 ||
    fail "the packages of an arm64 Java cannot be had, see $root.log"
  for file in "$state"/*.deb; do
    dpkg-deb -x "$file" "$state/all"
  done
  # What lies here hides this machine's file of the same name, so no more than is needed.
  cp -a "$state/all/usr/lib/aarch64-linux-gnu" "$state/all/usr/lib/jvm" "$root/usr/lib/"
  cp -a "$state/all/lib/aarch64-linux-gnu/." "$root/usr/lib/aarch64-linux-gnu/"
  ln -s usr/lib "$root/lib"
  ln -s aarch64-linux-gnu/ld-linux-aarch64.so.1 "$root/usr/lib/ld-linux-aarch64.so.1"
  # Java's settings are links to this machine's.
  find "$root/usr/lib/jvm" -type l -lname '/etc/*' | while read -r link; do
    file="$state/all$(readlink "$link")"
    rm "$link"
    [ ! -e "$file" ] || cp -a "$file" "$link"
  done
  rm -rf --one-file-system "$state"
  touch "$root/made"
}

# emulated SECONDS COMMAND ...: as an unprivileged user, in a user namespace in which arm64 programs
# run. All of its processes end with it. What needs root skips, in CI too.
emulated() {
  local limit="$1"
  shift
  mkdir -p "$folder/binfmt"
  QEMU_LD_PREFIX="$folder/root" PATH="$folder/bin:$PATH" timeout -k 10 "$limit" \
    env -u CI unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc \
    "$here/emulated.sh" "$folder/binfmt" "$@"
}

# What the JVM does less of where each instruction is dear.
quick=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto)

units() {
  local into="$folder/units"
  [ "${#selection[@]}" -gt 0 ] || selection=(--scan-classpath target/test-classes)
  rm -rf "$into"
  mkdir -p "$into/lib" "$into/tmp"
  (cd "$project" && mvn -B -q -pl native dependency:copy-dependencies -DincludeScope=test \
    -DexcludeGroupIds=org.junit.jupiter,org.junit.platform,org.opentest4j,org.apiguardian \
    -DoutputDirectory="$into/lib")
  (cd "$project" && mvn -B -q dependency:copy -DoutputDirectory="$into/lib" \
    -Dartifact=org.junit.platform:junit-platform-console-standalone:1.13.4)
  (cd "$project/native" && emulated "$unit_seconds" "$java" -Xmx1g "${quick[@]}" \
    "-Djava.io.tmpdir=$into/tmp" -cp "target/test-classes:target/classes:$into/lib/*" \
    org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=tree \
    --fail-if-no-tests --reports-dir "$into" --exclude-classname "$left_out" "${selection[@]}") > "$into/log" 2>&1
}

job() {
  local into="$folder/job" home="$project/benchmarks/spark/target/spark-home" zerohop report
  zerohop="$(find "$project/plugin/target" -maxdepth 1 -name "zerohop-spark-*.jar" ! -name "*-sources.jar" \
    ! -name "*-javadoc.jar" | head -n 1)"
  [ -n "$zerohop" ] && [ -d "$home/jars" ] || fail "package first: mvn -B package -DskipTests"
  rm -rf "$into"
  mkdir -p "$into/tmp"
  mkdir -m 700 "$into/sockets"
  # Workers write to a folder of SPARK_HOME.
  mkdir "$into/spark"
  ln -s "$home/jars" "$home/conf" "$home/RELEASE" "$into/spark/"
  (cd "$into" && JAVA_HOME="$java_home" SPARK_HOME="$into/spark" SPARK_SCALA_VERSION=2.13 \
    SPARK_LOCAL_IP=127.0.0.1 \
    emulated "$job_seconds" "$java" -Xmx600m "${quick[@]}" \
    "@$project/benchmarks/spark/java.options" "-Djava.io.tmpdir=$into/tmp" \
    -cp "$project/integration-tests/target/test-classes:$zerohop:$home/conf:$home/jars/*" \
    "-Dspark.executor.extraClassPath=$zerohop:$project/integration-tests/target/test-classes" \
    "-Dspark.executor.extraJavaOptions=${quick[*]} -Djava.io.tmpdir=$into/tmp" \
    "-Dspark.local.dir=$into/tmp" "-Dspark.zerohop.socket.dir=$into/sockets" \
    "-Dspark.master=local-cluster[2,1,1024]" -Dspark.executor.memory=600m -Dspark.network.timeout=300s \
    -Dspark.zerohop.pool.size=64m -Dspark.ui.enabled=false \
    -Dspark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager \
    io.zerohop.spark.versions.ShuffleApp) > "$into/log" 2>&1
  report="$(grep '^shuffle-app: ' "$into/log")" && echo "$report"
  [[ "$report" == *" groups=1000 sum=4999950000 "* ]] && [[ "$report" == *" zerohop.peer.bytes="[1-9]* ]] &&
    { [[ "$report" != *" zerohop.staged.bytes="* ]] || [[ "$report" == *" zerohop.staged.bytes=0"* ]]; }
}

[ $# -ge 1 ] || {
  sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
mkdir -p "$1/bin"
folder="$(cd "$1" && pwd)"
what="${2:-units job}"
selection=("${@:3}")
java_home="$folder/root/usr/lib/jvm/java-17-openjdk-arm64"
java="$java_home/bin/java"
install
make_root "$folder/root"
ln -sfn "$(command -v aarch64-linux-gnu-gcc)" "$folder/bin/cc"
for each in $what; do
  start=$SECONDS
  "$each" || fail "$each failed, see $folder/$each/log"
  echo "arm64: $each passed in $((SECONDS - start)) s"
done
