#!/usr/bin/env bash
# Builds the release of HEAD twice, in two folders of different names, and compares every byte:
#   reproducible.sh FOLDER [MAVEN OPTION...]   (a path without blanks, which nvcc does not take)
# FOLDER gets both builds, some hundred MB each, and is left to look at. Needs what a release needs:
# git, a JDK, Maven, a C compiler and nvcc. The same tools give the same bytes; others may not.
set -euo pipefail
project="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

fail() {
  printf 'reproducible: %s\n' "$1" >&2
  exit 1
}

[ $# -ge 1 ] || fail "a folder is needed: reproducible.sh FOLDER"
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
shift
commit="$(git -C "$project" rev-parse HEAD)"
trees=("$folder/first" "$folder/a-second-longer-one")
for tree in "${trees[@]}"; do
  rm -rf "$tree"
  mkdir -p "$tree"
  git -C "$project" archive "$commit" | tar -x -C "$tree"
  (cd "$tree" && mvn -B -q -Prelease -DskipTests "-Dzerohop.commit=$commit" -pl release -am "$@" package) ||
    fail "the build in $tree failed"
done
diff -r "${trees[0]}/target/release" "${trees[1]}/target/release" ||
  fail "two builds of $commit differ; diffoscope says where"
echo "reproducible: $(find "${trees[0]}/target/release" -type f | wc -l) files of $commit are the same twice"
