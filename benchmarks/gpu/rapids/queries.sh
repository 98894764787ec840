# shellcheck shell=bash disable=SC2154
# Tables and queries of TPC-H and TPC-DS.

# What the generators of tables need, as an argument of spark-submit.
application_jars() {
  local jars=("$dir"/application-jars/*.jar)
  (IFS=, && echo "${jars[*]}")
}

# Tables in memory, where later calls find them again; by as many processes as there are processors:
# threads of one do not scale.
generate() { # class, scale, folder
  local start="$SECONDS" shares share table status=0 pids=()
  [ ! -d "$3" ] || return 0
  rm -rf "$3.new" "$3".share-*
  shares="${GENERATORS:-$(nproc)}"
  for share in $(seq 0 $((shares - 1))); do
    CPU_MEMORY="${GENERATOR_MEMORY:-1500m}" CPU_JAVA=-XX:+UseSerialGC on_cpu "tables-$share" "${GENERATE_LIMIT:-500}" 1 "" \
      "$1" "$3.share-$share" "$2" "$share" "$shares" &
    pids+=($!)
  done
  for share in "${pids[@]}"; do wait "$share" || status=1; done
  for table in "$3".share-*/*; do
    mkdir -p "$3.new/$(basename "$table")"
    mv "$table"/*.parquet "$3.new/$(basename "$table")/"
  done
  rm -rf "$3".share-* "$out"/tables-*
  [ "$status" -eq 0 ] || {
    rm -rf "$3.new"
    return 1
  }
  mv "$3.new" "$3"
  echo "generated scale $2: $(du -sm "$3" | cut -f1) MB in $((SECONDS - start)) s"
}

# An application on this host's processors, with neither a cluster nor a GPU.
on_cpu() { # name, seconds, cores, more settings, class, arguments ...
  local name="$1" seconds="$2" threads="$3" more="$4" class="$5" status=0
  shift 5
  # A cluster that ends meanwhile takes its own files along.
  # shellcheck disable=SC2086 # These are several words.
  SPARK_LOCAL_DIRS="/dev/shm/zerohop-$name-local" timeout -k 5 "$seconds" java -Xmx"${CPU_MEMORY:-48g}" ${CPU_JAVA:-} @"$dir/java.options" -cp "$SPARK_HOME/jars/*" \
    org.apache.spark.deploy.SparkSubmit --master "local[$threads]" --conf spark.ui.enabled=false $more \
    --jars "$(application_jars)" --class "$class" "$tests" "$@" > "$out/$name.out" 2> "$out/$name.err" || status=$?
  rm -rf "/dev/shm/zerohop-$name-local"
  if [ "$status" -ne 0 ]; then
    echo "$name ended with status $status:" >&2
    grep -hE "ERROR|Exception|Caused" "$out/$name.err" | cut -c1-250 | awk '!seen[$0]++' | head -8 >&2
  fi
  return "$status"
}

# One application that asks a set's queries.
ask() { # name, contender, more settings, tpch or tpcds, mode and its arguments ...
  local name="$1" contender="$2" more="$3" set="$4"
  shift 4
  # shellcheck disable=SC2086 # These are several words.
  LIMIT="${LIMIT:-240}" submit "$name" "$contender" "--jars $(application_jars) $more" io.zerohop.gpu.GpuQueryApp \
    "$set" "$tables" "$scale" "${QUERY_LIMIT:-60}" "$@" ${QUERIES:-}
}
