# shellcheck shell=bash disable=SC2154
# Queries whose rows are compared with the CPU's.

compare() { # name, more settings, rows, way that blocks must take, queries ...
  local name="$1" more="$2" status=0
  shift 2
  rm -f "$out/$name.json"
  submit "$name" zerohop "$no_broadcasts --conf spark.sql.shuffle.partitions=16 $more" io.zerohop.gpu.GpuCheckApp \
    "$data" "$out/$name.json" "$@" || status=$?
  rm -rf "$data"
  grep -vE '"equal":true.*"went_its_way":true' "$out/$name.out" | grep -E '^\{|^[-+] |^checked|^expected' | cut -c1-300 | sed "s/^/$name: /" || true
  return "$status"
}

check() {
  local status=0
  compare rapids_check "" 1000000 direct || status=1
  python3 "$dir/rapids/results.py" check "$dir/commit" "$out/gpu_rapids.json" "$out"/rapids_check.json
  return "$status"
}

paths() {
  local status=0
  local some="group_by_string group_by_many nested inner_join window count_of_nothing"
  local tiny="--conf spark.zerohop.device.pool.size=2m --conf spark.zerohop.device.segment.size=2m"
  # shellcheck disable=SC2086 # These are several words.
  {
    compare staged "--conf spark.zerohop.paths=staged" 500000 staged $some || status=1
    compare host_pool "$tiny" 500000 host $some || status=1
    compare files "$tiny --conf spark.zerohop.pool.size=4m --conf spark.zerohop.segment.size=2m" 500000 files $some || status=1
    # Executors of this host read each other as if they were on other nodes.
    compare sent "--conf spark.zerohop.paths=local,sent,staged" 500000 sent $some || status=1
  }
  python3 "$dir/rapids/results.py" check "$dir/commit" "$out/gpu_rapids_paths.json" \
    "$out"/{staged,host_pool,files,sent}.json
  return "$status"
}
