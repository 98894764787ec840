#!/bin/sh
# Compiles libzerohop.so for the machine that builds, and for the other architecture where there is
# a cross compiler; and the binding of the CUDA driver for arm64, which JCuda has no library for.
# Usage: build.sh <java home> <os.arch of that Java> <folder of classes> <JCuda's version>
#   <folder for the same binding for x86-64, which tests compare with JCuda's own>
# Without a cross compiler the jar has no library for the other one, and the build says so; with
# ZEROHOP_NATIVES_REQUIRED=true, as for a release, the build fails.
set -eu
LC_ALL=C # The order of the sources decides the bytes of the library.
export LC_ALL
java_home=$1
here=$2
classes=$3
jcuda=$4
compared=$5
cd "$(dirname "$0")"

# The newest C library that may be wanted: the first one for arm64, and that of RHEL 7.
glibc=2.17

# The compiler of an architecture, or nothing.
compiler_of() {
  if [ "$1" = "$here" ]; then
    set -- "${CC:-gcc}" cc
  elif [ "$1" = aarch64 ]; then
    set -- "${CC_AARCH64:-aarch64-linux-gnu-gcc}"
  else
    set -- "${CC_AMD64:-x86_64-linux-gnu-gcc}"
  fi
  for candidate; do
    if command -v "$candidate" > /dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
}

# Fails where a library wants a newer C library than it should.
check_versions() {
  newest=
  if versions=$(readelf --wide --version-info "$1"); then
    newest=$(echo "$versions" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  fi
  if [ -z "$newest" ]; then
    echo "zerohop: readelf does not tell which glibc $1 wants; it comes with binutils" >&2
    exit 1
  fi
  if [ "$(printf '%s\n' "$newest" "GLIBC_$glibc" | sort -V | tail -n 1)" != "GLIBC_$glibc" ]; then
    echo "zerohop: $1 wants $newest, and no more than GLIBC_$glibc should be wanted:" >&2
    readelf --wide --dyn-syms "$1" | grep "@$newest" >&2
    echo "zerohop: pin these functions in $PWD/glibc.h" >&2
    exit 1
  fi
}

# compile COMPILER OUTPUT SOURCE...
compile() {
  compiler=$1
  output=$2
  shift 2
  if [ -f "$output" ] && [ -z "$(find . -newer "$output" -type f)" ]; then
    return
  fi
  mkdir -p "$(dirname "$output")"
  # Before glibc 2.34 dlopen is in libdl, which newer ones still have though they link without.
  libdl=$("$compiler" -print-file-name=libdl.so.2)
  "$compiler" -std=c11 -O2 -fPIC -shared -Wall -Wextra -Werror -fvisibility=hidden \
    -ffile-prefix-map="$PWD"=c -ffile-prefix-map="$java_home"=jdk \
    -Wl,-z,relro,-z,now,--build-id=none -I"$java_home/include" -I"$java_home/include/linux" \
    -o "$output.tmp" "$@" -Wl,--no-as-needed "$libdl"
  check_versions "$output.tmp"
  mv "$output.tmp" "$output"
}

if [ -z "$(compiler_of "$here")" ]; then
  echo "zerohop: no C compiler found. Install one (Debian: apt-get install gcc libc6-dev;" \
    "Fedora: dnf install gcc) or set CC." >&2
  exit 1
fi
if [ ! -f "$java_home/include/jni.h" ]; then
  echo "zerohop: $java_home/include/jni.h is missing. Set JAVA_HOME to a JDK 17." >&2
  exit 1
fi
for arch in amd64 aarch64; do
  library="$classes/io/zerohop/device/lib/linux-$arch/libzerohop.so"
  case $arch in
    aarch64) binding="$classes/lib/libJCudaDriver-$jcuda-linux-aarch64.so" ;;
    amd64) binding="$compared/lib/libJCudaDriver-$jcuda-linux-x86_64.so" ;;
  esac
  found=$(compiler_of "$arch")
  if [ -n "$found" ]; then
    compile "$found" "$library" ./*.c
    compile "$found" "$binding" jcuda/*.c
  else
    rm -f "$library" "$binding"
    if [ "${ZEROHOP_NATIVES_REQUIRED:-false}" = true ]; then
      case $arch in
        aarch64) install="gcc-aarch64-linux-gnu libc6-dev-arm64-cross, or set CC_AARCH64" ;;
        amd64) install="gcc-x86-64-linux-gnu libc6-dev-amd64-cross, or set CC_AMD64" ;;
      esac
      echo "ERROR: a release has a native library for $arch, and no C compiler for it was found:" \
        "install $install" >&2
      exit 1
    fi
    echo "NOTICE: no C compiler for $arch found: this jar will have no native library for it" \
      "(Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross, on arm64" \
      "gcc-x86-64-linux-gnu libc6-dev-amd64-cross)" >&2
  fi
done
