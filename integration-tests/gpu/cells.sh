#!/usr/bin/env bash
# Runs cells of the compatibility matrix on a GPU host, one on each GPU at a time.
#
#   cells.sh PACK LAYERS OUT CELL ...   PACK is that of `rapids.sh pack`, LAYERS of portable.sh; a CELL
#                                       is as for portable.sh. OUT/gpu_compatibility.json has a row for
#                                       each cell and kind of run; a further call adds to it
#
# A cell runs STEPS: check (queries of every kind, two executors that share the GPU and read each other
# by it) and tpcds (all its queries at scale factor SCALE, 1, with nothing set but README's keys; the
# CPU's rows are asked of the first cell's Spark, once).
#
#   LIMIT   seconds that a step may take (240)
set -euo pipefail

[ $# -ge 4 ] || { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
pack="$(cd "$1" && pwd)"; layers="$(cd "$2" && pwd)"; mkdir -p "$3"; out="$(cd "$3" && pwd)"
shift 3
steps=" ${STEPS:-check tpcds} "
gpus="$(nvidia-smi -L | wc -l)"
threads=$(($(nproc) / gpus))

kit() { # cell
  [ -d "$out/kits/$1" ] || "$here/portable.sh" setup "$layers" "$out/kits/$1" "$1"
  echo "$out/kits/$1"
}

step() { # cell, GPU, step
  local status=0 folder="$out/$1/$3" start="$SECONDS"
  mkdir -p "$folder"
  (
    export CUDA_VISIBLE_DEVICES="$2" GPUS=1 PORT=$((7077 + 10 * $2)) SCALE="${SCALE:-1}" CORES=8
    case "$3" in
      check) export PER_GPU=2 CORES=4 ;;
      tpcds) export MODE=check CONTENDERS=zerohop ;;
    esac
    exec timeout -k 15 "${LIMIT:-240}" taskset -c "$((threads * $2))-$((threads * ($2 + 1) - 1))" \
      "$pack/rapids.sh" "$3" "$pack" "$out/kits/$1" "$folder"
  ) > "$folder/log" 2>&1 || status=$?
  printf '{"cell": "%s", "step": "%s", "exit_status": %d, "seconds": %d}\n' "$1" "$3" "$status" $((SECONDS - start)) |
    tee -a "$out/cells.jsonl"
  [ "$status" -eq 0 ] || tail -n 6 "$folder/log" | cut -c1-250
}

# Cells in turns, of which this GPU takes what no other has taken.
worker() { # GPU, cells ...
  local gpu="$1" cell name
  shift
  for cell in "$@"; do
    mkdir "$out/taken.$cell" 2> /dev/null || continue
    for name in check tpcds; do
      [[ "$steps" != *" $name "* ]] || step "$cell" "$gpu" "$name"
    done
  done
}

for cell in "$@"; do kit "$cell" > /dev/null; done
rm -rf "$out"/taken.*
if [[ "$steps" == *" tpcds "* ]] && [ ! -d "$pack/answers/tpcds-${SCALE:-1}" ]; then
  SCALE="${SCALE:-1}" MODE=tables "$pack/rapids.sh" tpcds "$pack" "$(kit "$1")" "$out/tables"
  SCALE="${SCALE:-1}" MODE=answers CPU_APPS="${CPU_APPS:-4}" "$pack/rapids.sh" tpcds "$pack" "$(kit "$1")" "$out/answers"
fi
workers=()
for gpu in $(seq 0 $((gpus - 1))); do
  worker "$gpu" "$@" &
  workers+=($!)
done
wait "${workers[@]}"
python3 "$pack/rapids/results.py" cells "$pack/commit" "$out/gpu_compatibility.json" "$out"
