#!/bin/sh
# Compiles libzerohop.so. Usage: build.sh <java home> <output file>
set -eu
java_home=$1
output=$2
cd "$(dirname "$0")"

compiler=${CC:-gcc}
if ! command -v "$compiler" >/dev/null 2>&1; then
  compiler=cc
fi
if ! command -v "$compiler" >/dev/null 2>&1; then
  echo "zerohop: no C compiler found. Install one (Debian: apt-get install gcc libc6-dev;" \
    "Fedora: dnf install gcc) or set CC." >&2
  exit 1
fi
if [ ! -f "$java_home/include/jni.h" ]; then
  echo "zerohop: $java_home/include/jni.h is missing. Set JAVA_HOME to a JDK 17." >&2
  exit 1
fi
if [ -f "$output" ] && [ -z "$(find . -newer "$output" -type f)" ]; then
  exit 0
fi
mkdir -p "$(dirname "$output")"
"$compiler" -std=c11 -O2 -fPIC -shared -Wall -Wextra -Werror -fvisibility=hidden \
  -Wl,-z,relro,-z,now,--build-id=none -I"$java_home/include" -I"$java_home/include/linux" \
  -o "$output.tmp" ./*.c -ldl
mv "$output.tmp" "$output"
