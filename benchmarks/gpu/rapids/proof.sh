# shellcheck shell=bash disable=SC2154
# The proof that no bytes go over the host.

# Compiles the library that counts copies, and says what executors need to have it.
counter() { # library, where it writes to
  local cuda="${CUDA_HOME:-/usr/local/cuda}" cupti
  cupti="$(find -L "$cuda/extras/CUPTI" "$cuda/lib64" "$cuda/lib" -name 'libcupti.so*' -print -quit 2> /dev/null || true)"
  [ -n "$cupti" ] || {
    echo "no libcupti.so in $cuda: set CUDA_HOME to a CUDA toolkit" >&2
    return 1
  }
  gcc -std=c17 -D_GNU_SOURCE -O2 -shared -fPIC -Wall -Wextra -Werror -Wl,-z,defs \
    -isystem "$cuda/include" -isystem "$cuda/extras/CUPTI/include" \
    -o "$1" "$dir/rapids/copy_counter.c" "$dir/rapids/link_counter.c" "$cupti" -ldl -pthread || return 1
  # The caller's folders first: a toolkit may have another driver's libraries beside CUPTI.
  echo "--conf spark.executorEnv.CUDA_INJECTION64_PATH=$1 --conf spark.executorEnv.COPY_COUNTER_OUT=$2
    --conf spark.executorEnv.LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$cupti")"
}

proof() {
  local status=0 contender counted
  rm -f "$out"/proof-*
  for contender in zerohop multithreaded; do
    counted="$(counter "$out/libcopy_counter.so" "$out/proof-$contender.copies")"
    # shellcheck disable=SC2086 # These are several words.
    submit "proof-$contender" "$contender" "$whole_exchanges $counted" io.zerohop.gpu.GpuProofApp "$contender" "$out/proof-$contender.json" \
      "$gpus" ${MILLIONS:-40} 32 64 ${QUERIES:-repartition group_by join} || status=1
  done
  python3 "$dir/rapids/results.py" proof "$dir/commit" "$out/gpu_proof.json" "$out"/proof-{zerohop,multithreaded}.json || status=1
  return "$status"
}
