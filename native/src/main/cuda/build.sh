#!/bin/sh
# Compiles the kernels into one fat binary: build.sh SOURCE OUTPUT STAMP
# Machine code for every GPU generation that the RAPIDS Accelerator supports, and PTX of the newest
# for what comes after. Without nvcc there are no kernels: the jar says so where it is used, and
# with ZEROHOP_KERNELS_REQUIRED=true, as for a release, the build fails. What was compiled for is
# written beside the stamp, for the jar's manifest.
set -eu

source="$1"
output="$2"
stamp="$3"
headers="$(cd "$(dirname "$0")" && pwd)"
archs="${ZEROHOP_CUDA_ARCHS:-75 80 86 89 90 100 120}"
facts="${stamp%.inputs}.properties"

nvcc="${NVCC:-}"
for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" nvcc; do
  if [ -z "$nvcc" ] && command -v "$candidate" > /dev/null 2>&1; then
    nvcc="$candidate"
  fi
done
sources="$({
  echo "$archs"
  cat "$headers"/* "$source"
} | cksum)"
if [ -z "$nvcc" ]; then
  # What was compiled of the same sources where there is an nvcc, and came with the tree, stays.
  if [ "${ZEROHOP_KERNELS_REQUIRED:-false}" = false ] && [ -f "$output" ] && [ -f "$facts" ] &&
    [ "$(sed -n 2p "$stamp" 2> /dev/null)" = "$sources" ]; then
    exit 0
  fi
  rm -f "$output" "$facts"
  if [ "${ZEROHOP_KERNELS_REQUIRED:-false}" = true ]; then
    echo "ERROR: a release has GPU kernels, and no nvcc was found (NVCC, CUDA_HOME/bin, PATH):" \
      "install the CUDA toolkit 12.8 or later, or set CUDA_HOME to it" >&2
    exit 1
  fi
  echo "NOTICE: no nvcc found (NVCC, CUDA_HOME/bin, PATH): this jar will have no GPU kernels" >&2
  exit 0
fi

# Compiling takes half a minute: only when something changed.
inputs="$({
  "$nvcc" --version
  echo "$sources"
} | cksum)"
if [ -f "$output" ] && [ -f "$facts" ] && [ -f "$stamp" ] && [ "$(sed -n 1p "$stamp")" = "$inputs" ]; then
  exit 0
fi

mkdir -p "$(dirname "$output")"
targets="" names=""
for arch in $archs; do
  targets="$targets -gencode=arch=compute_$arch,code=sm_$arch"
  names="$names sm_$arch"
  newest="$arch"
done
# shellcheck disable=SC2086
if ! "$nvcc" -std=c++17 -O3 --threads 2 -Werror all-warnings -fatbin $targets \
  "-gencode=arch=compute_$newest,code=compute_$newest" -o "$output.part" -I "$headers" "$source"; then
  echo "ERROR: $nvcc does not compile for$names: if it does not know one of these, use nvcc of" \
    "CUDA 12.8 or later, or name your GPUs' architectures, such as ZEROHOP_CUDA_ARCHS=80 for an" \
    "A100 or 90 for an H100" >&2
  exit 1
fi
mv "$output.part" "$output"
echo "zerohop.kernels=${names# } compute_$newest" > "$facts"
printf '%s\n%s\n' "$inputs" "$sources" > "$stamp"
