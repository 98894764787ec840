#!/usr/bin/env bash
# Runs cells of the compatibility matrix on a GPU host, several side by side.
#
#   cells.sh PACK LAYERS OUT CELL ...   PACK is that of `rapids.sh pack`, LAYERS of portable.sh; a CELL
#                                       is as for portable.sh. OUT/gpu_compatibility.json has a row for
#                                       each cell and kind of run; a further call with the same PACK goes
#                                       on where this one has stopped
#
# A cell runs STEPS (all): check (queries of every kind, two executors that share a GPU and read each
# other by it), paths (some with each path forced), faults (executors killed, map outputs lost, blocks
# damaged, queries cancelled), checksums (row checksums and a killed executor, where Spark has them) and
# tpcds (all its queries at scale factor SCALE, 1, with nothing set but README's keys; the CPU's rows
# are asked of the first cell's Spark, once). Other Sparks than the build's want fault_app.sh (portable)
# before `rapids.sh pack`.
#
#   LANES         how many steps run on a GPU at a time (3); tpcds has its GPU for itself
#   STEP_LIMIT    seconds that a step may take (420)
#   SECONDS_LEFT  how long this call may take (540); what would take longer is left for another call
# shellcheck disable=SC2030,SC2031 # Each subshell has a SCALE of its own.
set -euo pipefail

[ $# -ge 4 ] || {
  sed -n '2,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
pack="$(cd "$1" && pwd)"
layers="$(cd "$2" && pwd)"
mkdir -p "$3"
out="$(cd "$3" && pwd)"
shift 3
steps=" ${STEPS:-faults check paths checksums tpcds} "
gpus="$(nvidia-smi -L | wc -l)"
commit="$(cat "$pack/commit")"
mkdir -p "$out/kits" "$out/done-$commit"

kit() { # cell
  if [ ! -d "$out/kits/$1" ]; then
    "$here/portable.sh" setup "$layers" "$out/kits/$1.new" "$1"
    mv "$out/kits/$1.new" "$out/kits/$1"
  fi
  echo "$out/kits/$1"
}

# Seconds that a step takes at most, all being well.
seconds_of() {
  case "$1" in
    faults) echo 420 ;;
    tpcds | paths) echo 180 ;;
    *) echo 150 ;;
  esac
}

step() { # cell, step, GPU, lane, lanes
  local status=0 folder="$out/$1/$2" start="$SECONDS" command="$2" threads=$(($(nproc) / gpus / $5))
  local first=$((threads * ($3 * $5 + $4)))
  rm -rf "$folder" # What an earlier try has left is not this one's.
  mkdir -p "$folder"
  (
    export CUDA_VISIBLE_DEVICES="$3" GPUS=1 PORT=$((7077 + 100 * $3 + 10 * $4)) SHARE="$5" SCALE="${SCALE:-1}"
    case "$2" in
      check | paths | checksums) export PER_GPU=2 CORES=4 ;;
      faults)
        [[ "$1" == *-26.* ]] || export SLICES_LEFT=1
        export SUITES="${SUITES:-GpuFaultSuite}"
        ;;
      tpcds) export CORES=8 MODE=check CONTENDERS=zerohop ;;
    esac
    [ "$2" != checksums ] || export TURNS=0
    unset LIMIT # Of an application, to rapids.sh.
    exec timeout -k 15 "${STEP_LIMIT:-420}" taskset -c "$first-$((first + threads - 1))" \
      "$pack/rapids.sh" "$command" "$pack" "$out/kits/$1" "$folder"
  ) > "$folder/log" 2>&1 || status=$?
  printf '{"cell": "%s", "step": "%s", "commit": "%s", "exit_status": %d, "seconds": %d}\n' "$1" "$2" "$commit" "$status" $((SECONDS - start)) |
    tee -a "$out/cells.jsonl"
  if [ "$status" -eq 0 ]; then
    touch "$out/done-$commit/$1.$2"
  else
    tail -n 6 "$folder/log" | cut -c1-250
  fi
}

# Whether a cell has a step: Spark has row checksums from 4.1 on.
has() { # cell, step
  [ "$2" != checksums ] || [[ "$1" =~ ^4\.[1-9] ]]
}

# Steps that no other lane has taken, while there is time for them.
lane() { # GPU, lane, lanes, steps, cells ...
  local gpu="$1" lane="$2" lanes="$3" names="$4" cell name
  shift 4
  for name in $names; do
    for cell in "$@"; do
      has "$cell" "$name" || continue
      [ ! -e "$out/done-$commit/$cell.$name" ] || continue
      mkdir "$out/taken.$cell.$name" 2> /dev/null || continue
      if [ $((SECONDS + $(seconds_of "$name"))) -gt "${SECONDS_LEFT:-540}" ]; then
        echo "$cell: $name is left for another call"
      else
        step "$cell" "$name" "$gpu" "$lane" "$lanes"
      fi
    done
  done
}

lanes() { # number, steps, cells ...
  local pids=() gpu lane number="$1"
  shift
  rm -rf "$out"/taken.*
  for gpu in $(seq 0 $((gpus - 1))); do
    for lane in $(seq 0 $((number - 1))); do
      lane "$gpu" "$lane" "$number" "$@" &
      pids+=($!)
    done
  done
  wait "${pids[@]}"
}

pids=()
for cell in "$@"; do
  kit "$cell" > /dev/null &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
wanted=
for name in faults check paths checksums; do
  [[ "$steps" != *" $name "* ]] || wanted="$wanted $name"
done
[ -z "$wanted" ] || lanes "${LANES:-3}" "$wanted" "$@"
if [[ "$steps" == *" tpcds "* ]]; then
  answers="$pack/answers/tpcds-${SCALE:-1}"
  if [ -d "$answers" ] || [ $((SECONDS + 200)) -le "${SECONDS_LEFT:-540}" ]; then
    # Here, since lanes would make them side by side.
    SCALE="${SCALE:-1}" MODE=tables "$pack/rapids.sh" tpcds "$pack" "$(kit "$1")" "$out/tables"
    [ -d "$answers" ] ||
      SCALE="${SCALE:-1}" MODE=answers CPU_APPS="${CPU_APPS:-4}" "$pack/rapids.sh" tpcds "$pack" "$(kit "$1")" "$out/answers"
    lanes 1 tpcds "$@"
  fi
fi
python3 "$pack/rapids/results.py" cells "$pack/commit" "$out/gpu_compatibility.json" "$out"
