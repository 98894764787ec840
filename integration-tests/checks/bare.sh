#!/usr/bin/env bash
# Runs `./demo` and `mvn -B verify` with what README's section "Start" names and nothing else:
#   bare.sh root FOLDER   as root: in a Debian root made in FOLDER, as an unprivileged user
#   bare.sh user FOLDER   as an unprivileged user: on this machine with what it has
# The tree is what `git archive HEAD` gives, into an empty folder. What ran is kept in
# FOLDER/results, and bare.py makes docs/measurements/bare.json of it. Further runs with the same
# FOLDER use the same Debian root.
#   BARE_REPOSITORY   a Maven repository that a new Debian root starts with (it has none otherwise)
#   BARE_COMMANDS     which of "demo verify" to run (both)
#   BARE_VERIFY       the command for verify ("mvn -B verify")
# Needs debootstrap, git and python3, which the commands that it runs do not.
set -euo pipefail
project="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
packages=(openjdk-17-jdk-headless maven gcc libc6-dev)
release=bookworm
user=zerohop
demo_seconds=2400 verify_seconds=7200

fail() {
  printf 'bare: %s\n' "$1" >&2
  exit 1
}

# A minimal Debian with the packages, the names and the certificates that this machine knows.
make_root() {
  local root="$1"
  if [ ! -e "$root/made" ]; then
    rm -rf --one-file-system "$root"
    # It mounts /proc there.
    unshare --mount debootstrap --variant=minbase --include="$(
      IFS=,
      echo "${packages[*]}"
    )" \
      "$release" "$root"
    chroot "$root" useradd --create-home "$user"
    if [ -n "${BARE_REPOSITORY:-}" ]; then
      mkdir "$root/home/$user/.m2"
      cp -R "$BARE_REPOSITORY" "$root/home/$user/.m2/repository"
    fi
    touch "$root/made"
  fi
  cp /etc/hosts /etc/resolv.conf /etc/hostname "$root/etc"
  find /usr/local/share/ca-certificates -name '*.crt' \
    -exec cp {} "$root/usr/local/share/ca-certificates" \;
}

# Its own mounts and processes, which end with this script: unshare calls it as process 1.
inside() {
  local folder="$1" root="$1/root" file
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for file in null zero full random urandom tty; do
    touch "$root/dev/$file"
    mount --bind "/dev/$file" "$root/dev/$file"
  done
  ln -s /proc/self/fd "$root/dev/fd"
  mkdir "$root/dev/shm"
  mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
  chroot "$root" update-ca-certificates > /dev/null
  tree="/home/$user/tree"
  run_all "$folder" chroot --userspec="$user" "$root" \
    env -i HOME="/home/$user" USER="$user" LOGNAME="$user" PATH=/usr/local/bin:/usr/bin:/bin
}

# run_all FOLDER PREFIX...: both commands behind the prefix, in $tree
run_all() {
  local folder="$1" command limit status start
  shift
  for command in ${BARE_COMMANDS:-demo verify}; do
    case "$command" in
      demo) limit=$demo_seconds line="./demo" ;;
      verify) limit=$verify_seconds line="${BARE_VERIFY:-mvn -B verify}" ;;
      *) fail "demo or verify, not $command" ;;
    esac
    echo "bare: $line"
    start=$SECONDS status=0
    timeout -k 30 "$limit" "$@" sh -c "cd '$tree' && exec $line" \
      > "$folder/results/$command.log" 2>&1 < /dev/null || status=$?
    printf '%s\n%d\n%d\n' "$line" "$status" $((SECONDS - start)) > "$folder/results/$command.ran"
    echo "bare: $line: exit status $status after $((SECONDS - start)) s"
  done
}

# lay_out TREE: what HEAD has, and nothing of a run before
lay_out() {
  rm -rf "$1"
  mkdir -p "$1"
  git -C "$project" rev-parse HEAD > "$folder/results/commit"
  git -C "$project" archive "$(cat "$folder/results/commit")" | tar -x -C "$1"
}

case "${1:-}" in
  root | user) [ $# = 2 ] || fail "a folder is needed: bare.sh $1 FOLDER" ;;
  inside)
    inside "$2"
    exit
    ;;
  *) fail "root or user, and a folder: bare.sh root FOLDER" ;;
esac
mkdir -p "$2/results"
folder="$(cd "$2" && pwd)"
exec 9> "$folder/lock"
flock -n 9 || fail "$folder is in use"
rm -f "$folder/results"/*
if [ "$1" = root ]; then
  [ "$(id -u)" = 0 ] || fail "a Debian root is made and entered by root"
  make_root "$folder/root"
  tree="$folder/root/home/$user/tree"
  lay_out "$tree"
  chroot "$folder/root" chown -R "$user:$user" "/home/$user"
  unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" inside "$folder" 9>&- &
  child=$!
  # unshare ignores all milder signals, and the commands end with it.
  trap 'kill -KILL $child; exit 1' INT TERM HUP
  wait "$child"
  trap - INT TERM HUP
  system="Debian $(cat "$folder/root/etc/debian_version"), minbase"
else
  [ "$(id -u)" != 0 ] || fail "as an unprivileged user, not as root"
  tree="$folder/tree" packages=()
  lay_out "$tree"
  run_all "$folder" env -u CI 9>&-
  system="$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), this machine's packages"
fi
"$project/integration-tests/checks/bare.py" "$folder/results" "$tree" "$1" "$system" \
  "${packages[@]}"
