#!/usr/bin/env bash
# Runs what wants an RDMA adapter in virtual machines that have one made by software (image.sh).
#   rdma.sh FOLDER JOB ...   JOB: a name of jobs/; one that has a NAME.other.sh, too, gets a second
#                            machine, joined to the first; needs the packaged tree
#   rdma.sh FOLDER all       what `mvn -B verify -Prdma -Dlibucx=...` runs
#   LIBUCX                   folder of a libucp.so.0 of 1.19 or later, whose verbs are in its folder ucx
# FOLDER keeps the image, and FOLDER/JOB what a job has written; FOLDER/jobs.tsv has the exit status of
# each and its seconds, and those of all together, FOLDER/libucx the version. Ends with 1 if a job
# fails. As root it installs what it needs.
# "Software RDMA, verbs": what is seen is what UCX does over verbs, and no adapter's speed.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
[ $# -ge 2 ] || {
  sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
[ -e "${LIBUCX:-}/libucp.so.0" ] && [ -e "$LIBUCX/ucx/libuct_ib.so.0" ] || {
  echo "rdma: LIBUCX (-Dlibucx) names no folder of a libucx with verbs, which no Debian has of 1.19 or later" >&2
  exit 125
}
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
shift

install() {
  local missing=() tool package
  while read -r tool package; do
    command -v "$tool" > /dev/null || missing+=("$package")
  done << 'END'
qemu-system-x86_64 qemu-system-x86
debootstrap debootstrap
busybox busybox-static
cpio cpio
depmod kmod
mke2fs e2fsprogs
pkill procps
END
  [ "${#missing[@]}" -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || {
    echo "rdma: missing: ${missing[*]}" >&2
    exit 125
  }
  echo "rdma: installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# The tests with all that they need, as a disk that every machine has.
pack() {
  local into="$folder/pack" module
  rm -rf "$into"
  mkdir -p "$into"/{lib,libucx/ucx,classes,test-classes,spark-lib}
  cp -L "$LIBUCX"/libuc[mpst].so.0 "$into/libucx/"
  cp -L "$LIBUCX"/ucx/*.so.0 "$into/libucx/ucx/"
  for module in native shuffle; do
    cp -r "$root/$module/target/classes/." "$into/classes/"
    cp -r "$root/$module/target/test-classes/." "$into/test-classes/"
  done
  # With package, since a module's jar of tests is in no repository but in the build's own hands.
  (cd "$root" && mvn -B -q -pl native,test-support/native,shuffle -DskipTests package dependency:copy-dependencies \
    -DincludeScope=test \
    -DexcludeGroupIds=io.zerohop,org.junit.jupiter,org.junit.platform,org.opentest4j,org.apiguardian \
    -DoutputDirectory="$into/lib")
  mvn -B -q dependency:copy -DoutputDirectory="$into/lib" \
    -Dartifact=org.junit.platform:junit-platform-console-standalone:1.13.4
  cp "$(find "$root/plugin/target" -maxdepth 1 -name 'zerohop-spark-*.jar' ! -name '*-sources.jar' \
    ! -name '*-javadoc.jar')" "$into/zerohop.jar"
  cp -r "$root/integration-tests/target/test-classes" "$into/spark-tests"
  cp "$root"/{benchmarks/spark/target/application,integration-tests/target/suite}-jars/*.jar "$into/spark-lib/"
  cp "$(ls "$root"/benchmarks/spark/target/zerohop-benchmarks-spark-*.jar)" "$into/spark-lib/"
  cp -rL "$root/benchmarks/spark/target/spark-home" "$into/spark-home"
  cp "$here"/{verbs,spark,proof}.sh "$into/"
  rm -f "$folder/pack.ext4"
  mke2fs -q -t ext4 -d "$into" -m 0 "$folder/pack.ext4" 800M
  rm -rf "$into"
}

# machine NUMBER HOST SCRIPT: runs a script in it, and ends with its exit status
machine() {
  rm -rf "$2"
  mkdir -p "$2"
  cp "$3" "$2/job.sh"
  MACHINE="$1" LIMIT="${LIMIT:-1500}" "$here/boot.sh" "$folder" bookworm "$2"
}

# job NAME: with its second machine, if it has one
job() {
  local host="$folder/$1" other="$here/jobs/$1.other.sh" status=0 second=
  if [ ! -e "$other" ]; then
    machine 1 "$host" "$here/jobs/$1.sh"
    return
  fi
  export WIRE="$folder/wire"
  rm -f "$WIRE"
  {
    until [ -S "$WIRE" ]; do sleep 0.1; done
    machine 2 "$host-other" "$other"
  } &
  second=$!
  machine 1 "$host" "$here/jobs/$1.sh" || status=$?
  pkill -TERM -f "addr.path=$WIRE" || true
  wait "$second" || true
  unset WIRE
  return "$status"
}

# Jobs one after the other; a line of jobs.tsv each.
in_turn() { # JOB ...
  local name status start failed=0
  for name in "$@"; do
    status=0 start=$SECONDS
    job "$name" || status=$?
    printf '%s\t%d\t%d\n' "$name" "$status" $((SECONDS - start)) | tee -a "$folder/jobs.tsv"
    [ "$status" -eq 0 ] || failed=1
  done
  return "$failed"
}

# The one that waits most of the time runs beside the one that does not.
everything() {
  local failed=0 beside
  in_turn stop &
  beside=$!
  in_turn unit || failed=1
  wait "$beside" || failed=1
  in_turn spark proof || failed=1
  return "$failed"
}

install
pack
: > "$folder/jobs.tsv"
LD_LIBRARY_PATH="$LIBUCX" python3 - > "$folder/libucx" << 'END'
import ctypes

numbers = [ctypes.c_uint() for _ in range(3)]
ctypes.CDLL("libucp.so.0").ucp_get_version(*map(ctypes.byref, numbers))
print(".".join(str(number.value) for number in numbers))
END
"$here/image.sh" "$folder"
failed=0 start=$SECONDS
if [ "$*" = all ]; then
  everything || failed=1
  printf '%s\t%d\t%d\n' whole "$failed" $((SECONDS - start)) | tee -a "$folder/jobs.tsv"
else
  in_turn "$@" || failed=1
fi
exit "$failed"
