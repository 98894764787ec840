#!/usr/bin/env bash
# Everything that needs a GPU, within a limit of time; a further call goes on where this one stopped.
#
#   all.sh pack DIR           collects what run.sh and rapids.sh need into DIR; needs the built tree
#   all.sh run DIR KIT OUT    the steps that OUT does not have of DIR's commit, one after the other,
#                             as far as the time reaches; KIT as for rapids.sh
#   all.sh summary DIR OUT    what OUT has of DIR's commit, and what is missing; fails if anything is
#
#   SECONDS_LEFT   how long run may take (1500); a step that would take longer is left for another call
#   STEPS          some of them
#
# Each step has a folder in OUT for itself, with the JSON of its measurement and its output in
# log. OUT/steps.jsonl has a line for each that ran: its commit, GPUs, exit status and seconds. A step
# that failed runs again at the next call; one that wants more GPUs than there are is missing.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
usage() {
  sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}

# Name, GPUs that it needs at least, seconds that it may take, and the command. Those come first that
# say whether anything is wrong. The seconds are of one or two H200.
steps() {
  cat << 'END'
native      1  180  native test
check       1  150  spark check
paths       1  180  spark paths
doctor      2  240  spark doctor
faults      1  560  spark faults
pressure    1  200  spark pressure
memory      1  420  spark memory
kills       1  330  spark kills
blocks      1  420  spark blocks
tax         1  180  spark tax
kudo        1  420  spark kudo
tiers       1  160  spark tiers
sanitize    1  300  native sanitize
proof       1  240  spark proof
rows        1  240  spark rows
bench       2  300  spark bench
checksums   2  300  spark checksums
tpcds       1 1400  spark tpcds
END
}

wanted() { [[ " ${STEPS:-$1} " == *" $1 "* ]]; }

# done_at STEP GPUS: whether OUT has it of this commit, on as many GPUs
done_at() {
  [ -f "$out/steps.jsonl" ] && grep -qF "\"step\": \"$1\", \"commit\": \"$commit\", \"gpus\": $2, \"exit_status\": 0," "$out/steps.jsonl"
}

perform() { # step, seconds, native or spark, command
  local status=0 start="$SECONDS"
  mkdir -p "$out/$1"
  echo "$1: at most $2 s"
  # A subshell, since the settings of one step are not for the next.
  (
    case "$1" in
      kills) export LIMIT=$(($2 - 130)) ;; # It ends by itself, and is to do so in time.
      tpcds) export MODE=time ROUNDS="${ROUNDS:-1}" LIMIT=500 ;;
    esac
    if [ "$3" = native ]; then
      exec timeout -k 15 "$2" "$dir/native/run.sh" "$4" "$dir/native" "$out/$1"
    fi
    exec timeout -k 15 "$2" "$dir/spark/rapids.sh" "$4" "$dir/spark" "$kit" "$out/$1"
  ) > "$out/$1/log" 2>&1 || status=$?
  printf '{"step": "%s", "commit": "%s", "gpus": %d, "exit_status": %d, "seconds": %d}\n' \
    "$1" "$commit" "$gpus" "$status" $((SECONDS - start)) >> "$out/steps.jsonl"
  echo "$1: exit status $status after $((SECONDS - start)) s"
  [ "$status" -eq 0 ] || tail -n 5 "$out/$1/log" | cut -c1-200
}

run() {
  local step least seconds kind command
  gpus="$(nvidia-smi -L | wc -l)"
  while read -r step least seconds kind command; do
    if ! wanted "$step" || done_at "$step" "$gpus"; then
      continue
    elif [ "$gpus" -lt "$least" ]; then
      echo "$step: needs $least GPUs"
    elif [ $((SECONDS + seconds)) -gt "${SECONDS_LEFT:-1500}" ]; then
      echo "$step: left for another call, since it may take $seconds s"
    else
      perform "$step" "$seconds" "$kind" "$command" < /dev/null
    fi
  done < <(steps)
}

summary() {
  local step rest missing=()
  while read -r step rest; do
    wanted "$step" || continue
    [ -f "$out/steps.jsonl" ] && grep -qF "\"step\": \"$step\", \"commit\": \"$commit\"," "$out/steps.jsonl" &&
      grep -F "\"step\": \"$step\", \"commit\": \"$commit\"," "$out/steps.jsonl" | grep -qF '"exit_status": 0,' || missing+=("$step")
  done < <(steps)
  [ ! -f "$out/steps.jsonl" ] || grep -F "\"commit\": \"$commit\"" "$out/steps.jsonl" || true
  [ "${#missing[@]}" -eq 0 ] || {
    echo "missing or failed at $commit: ${missing[*]}"
    return 1
  }
}

command="${1:-}"
case "$command" in
  pack)
    [ $# -eq 2 ] || usage
    mkdir -p "$2"
    dir="$(cd "$2" && pwd)"
    "$here/rapids.sh" pack "$dir/spark"
    "$here/run.sh" pack "$dir/native"
    rm -rf "$dir/native/jre" # KIT has one.
    cp "${BASH_SOURCE[0]}" "$dir/"
    ;;
  run)
    [ $# -eq 4 ] || usage
    dir="$(cd "$2" && pwd)"
    kit="$(cd "$3" && pwd)"
    mkdir -p "$4"
    out="$(cd "$4" && pwd)"
    commit="$(cat "$dir/spark/commit")"
    [ -e "$dir/native/jre" ] || ln -s "$kit/jre17" "$dir/native/jre"
    run
    summary
    ;;
  summary)
    [ $# -eq 3 ] || usage
    dir="$(cd "$2" && pwd)"
    out="$(cd "$3" && pwd)"
    commit="$(cat "$dir/spark/commit")"
    summary
    ;;
  *) usage ;;
esac
