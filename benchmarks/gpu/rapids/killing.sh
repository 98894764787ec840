# shellcheck shell=bash disable=SC2154
# An executor is killed every KILL_EVERY seconds while an application of a contender "+killed" runs.

start_killing() { # contender
  killing "$1" > /dev/null 2>&1 &
  killer=$!
}

stop_killing() {
  [ -z "${killer:-}" ] || kill "$killer" 2> /dev/null || true
  killer=
}

# From when there are executors until the cluster ends; each death is a line of OUT/killed.jsonl.
killing() { # contender
  local every="${KILL_EVERY:-30}" session seconds=0 executors victim
  session="$port-$(date +%s)"
  RANDOM="${KILL_SEED:-1}"
  while sleep 1 && kill -0 "$worker"; do
    mapfile -t executors < <(executors_of "$worker")
    [ "${#executors[@]}" -gt 0 ] || [ "$seconds" -gt 0 ] || continue
    seconds=$((seconds + 1))
    [ $((seconds % every)) -eq 0 ] && [ "${#executors[@]}" -gt 0 ] || continue
    victim="${executors[RANDOM % ${#executors[@]}]}"
    ! kill -9 "$victim" || printf '{"case": "%s", "session": "%s", "every": %s, "seconds": %s, "pid": %s}\n' \
      "$1" "$session" "$every" "$seconds" "$victim" >> "$out/killed.jsonl"
  done
}

# Process ids of the executors that a worker has started.
executors_of() { # worker
  local status
  # shellcheck disable=SC2013 # Paths of /proc have no blanks.
  for status in $(grep -ls "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status); do
    grep -qs CoarseGrainedExecutorBackend "${status%/status}/cmdline" || continue
    status="${status%/status}"
    echo "${status#/proc/}"
  done
}
