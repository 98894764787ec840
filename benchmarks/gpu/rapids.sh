#!/usr/bin/env bash
# Runs Spark with the RAPIDS Accelerator on a GPU host, its shuffles through Zerohop.
#
#   rapids.sh pack DIR             collects our jars into DIR (9 MiB); needs the built tree
#   rapids.sh check DIR KIT OUT    queries of every kind, every row compared with the CPU's
#   rapids.sh paths DIR KIT OUT    some of them with each path forced, and with pools that are full
#   rapids.sh bench DIR KIT OUT    exchanges timed, beside file-based shuffles
#   rapids.sh blocks DIR KIT OUT   exchanges of many map tasks and partitions, timed at Spark's defaults
#   rapids.sh form DIR KIT OUT     the same by hash and by range, on KIT's Spark and on a later one's, whose
#                                  kit is OTHER_KIT, in turns
#   rapids.sh between DIR KIT OUT  executors as if each were on a node of its own, at defaults (path sent),
#                                  timed beside files; PER_GPU=2 on a host with one GPU. NETWORKS are some
#                                  of plain (127.0.0.1), crypto (the same, encrypted by Spark), link (two
#                                  network namespaces), link25 and link10 (so many Gb/s; needs ip and tc)
#   rapids.sh tax DIR KIT OUT      what an exchange itself costs: a query with one beside the same without
#   rapids.sh kudo DIR KIT OUT     RAPIDS' GPU serializer without Spark: its costs beside other forms of a
#                                  batch, and random tables through it, with compute-sanitizer, too; and
#                                  the rules of cudf that unit tests rely on, by the same test classes
#   rapids.sh tiers DIR KIT OUT    a segment's way to host memory and back, as it is and compressed on the GPU
#   rapids.sh demo DIR KIT OUT     a short one of these, shown as a table and a plot
#   rapids.sh proof DIR KIT OUT    the same exchanges with CUDA's copies counted: none go over the host;
#                                  needs gcc and a CUDA toolkit with CUPTI (CUDA_HOME, /usr/local/cuda)
#   rapids.sh checksums DIR KIT OUT
#                                  row checksums: who runs again when an executor is lost (needs two
#                                  executors), and what they cost
#   rapids.sh memory DIR KIT OUT   exchanges that GPU memory has no room for, beside files; no task may
#                                  fail
#   rapids.sh neighbour DIR KIT OUT
#                                  two executors, one of them with a pool of a fifth of its blocks, with
#                                  and without GPU memory borrowed from the other, beside full pools;
#                                  needs two GPUs. With SMOKE=1 on CPU rows: a test of the script
#   rapids.sh pressure DIR KIT OUT
#                                  RAPIDS out of GPU memory while our pool has some, on one GPU: the
#                                  pool gives it back
#   rapids.sh nodes DIR KIT OUT    executors as if each were on a node of its own, by UCX: queries of every
#                                  kind, what is logged of peers, and exchanges timed beside NVLink; needs
#                                  LIBUCX, folders of libucx (in lib) with CUDA, 1.22 or later, the first
#                                  to be timed
#   rapids.sh doctor DIR KIT OUT   the doctor by itself, with faults planted and as a job, and the tab GPU
#                                  Shuffle of an application, live and in the history server, beside
#                                  what its tasks reported
#   rapids.sh rows DIR KIT OUT     the demo's queries without RAPIDS, their rows in GPU memory
#   rapids.sh faults DIR KIT OUT   the suites of io.zerohop.spark.gpu: faults, odd queries and settings;
#                                  SUITES names some of them (GpuFaultSuite, ...), and with SMOKE=1
#                                  they run anywhere, on CPU rows: a test of the tests, no result;
#                                  LIBUCX as for nodes adds faults between executors that UCX connects;
#                                  SLICES_LEFT=1 for a RAPIDS whose own split is used
#   rapids.sh kills DIR KIT OUT    executors killed again and again, on host memory and, but with SMOKE=1,
#                                  on the GPUs; adds up in OUT/kills.json
#   rapids.sh tpch DIR KIT OUT     TPC-H's 22 queries, compared with the CPU's rows or timed
#   rapids.sh tpcds DIR KIT OUT    TPC-DS' 103 queries at Spark's and RAPIDS' defaults, likewise
#   rapids.sh etl DIR KIT OUT      a job that writes Parquet tables, clustered, sorted and joined, made of
#                                  those of TPC-DS, at defaults
#
# KIT is a folder with jre17 (a Java run time), spark (jars/ and RELEASE of Spark 4.1.3), rapids.jar
# (RAPIDS Accelerator 26.08.1), and native (amd64/Linux/libcudf.so) if that is not in rapids.jar;
# kit.sh makes one. For all commands:
#   GPUS     how many of the host's GPUs are used (all)
#   PER_GPU  executors on each (1); several read each other as peers do over NVLink. One GPU only
#   SHARE    runs that share a GPU at a time (1), each with its part of the memory
#   CORES    how many tasks an executor runs at a time (8; bench and demo 16)
#   LIMIT    how many seconds one application may take (150)
#   MORE     further arguments of spark-submit
#   EVENTS   if set, applications leave their event logs in OUT/events, for scripts/operators.py
#   PORT     of the cluster's master (7077), which the other ports and folders go by. Two runs at a
#            time need one each, an OUT each, GPUs each (GPUS and CUDA_VISIBLE_DEVICES) and processors
#            each (taskset); BESIDE is kept in the results, for what ran meanwhile
# For bench, and the last three for checksums and neighbour, which time TURNS (2) of each, and memory:
#   CONTENDERS  zerohop sort multithreaded, or ucx if UCX is the folder of a UCX with CUDA; each may
#               be varied: +arena (another memory pool of RAPIDS), +compress (files, as is Spark's
#               default; without it they are not), +skipmerge and +kudo (of multithreaded), +nodes
#               (of zerohop: by UCX), +between (as if each executor were on a node of its own, at
#               defaults; of files, too), +crypto and +link (see between), +isolated
#               (each executor sees one GPU, as in containers), +nopeers (none can map another's GPU
#               memory, as without peer access), +packed (of zerohop: RAPIDS' own split), +sync (of
#               zerohop: map tasks wait for their copies), +keeper (of zerohop: with a keeper),
#               +fat (reduce tasks of FAT, 256m, by adaptive execution, in all stages), +many (of
#               zerohop: as many as Spark makes by default), +sizeN (of zerohop: of another size than
#               its default, such as +size64m), +apart (a union's branches in tasks of their own),
#               +unsummed (of zerohop: blocks have no checksums), +before (of zerohop: the jar of
#               another tree, which BEFORE names), +tight (little GPU memory)
#   ROUNDS      5
#   MILLIONS    of rows: 80
#   QUERIES     each partitions:query,query:rounds:millions, or MAPSxPARTITIONS:..., and with a fifth
#               part, all, without coalescing of partitions
# For memory VARIANTS are some of zerohop no-spill fifth moving tight multithreaded sort (all).
# For blocks and between the same, with 3 rounds in each of TURNS (1) applications of a contender;
# for form without CONTENDERS, and with 2 TURNS.
# For kills, which ends by itself after LIMIT (480) seconds, and at most GRACE (100) later:
#   JOBS         runners of the host's suites at a time (a third of the processors, 0 for none)
#   GPU_APPS     applications at a time on each GPU (2, 0 for none), on PORT, PORT + 10, ...
#   RUNS         of each fault before the next one has its turn (6)
#   SENT         if set, blocks go over Spark's connections alone
#   KEPT         if set, a keeper has what executors publish
# For tpch, whose tables are generated into /dev/shm once and left there:
#   MODE         check (the CPU's answers are taken from DIR/answers/SCALE, where pack puts those of
#                benchmarks/spark/target/answers, or asked for), time, or tables to stop there
#   SCALE        of the tables: 10
#   CONTENDERS   take turns; one may be named twice
#   ROUNDS       3, after one that warms up
#   QUERIES      some of q1 to q22
#   QUERY_LIMIT  how many seconds a query may take (60)
#   PARTITIONS   of shuffles, without broadcasts; nothing is set if it is not
#   APPEND       1 to keep what is in OUT and add to it
#   RESULT       name of the measurement (gpu_tpch)
#   GENERATORS   processes that write the tables (one for each processor)
# For tpcds the same, but for PARTITIONS, of which there may be several, and broadcasts stay; and
#   MODE         check (rows, and plans beside those of the other contenders; the CPU is asked for its
#                rows meanwhile if DIR/answers/tpcds-SCALE is not there), time, tables, answers (the
#                CPU's alone), or report (what OUT has, once more)
#   CONTENDERS   zerohop zerohop+tight multithreaded to check, zerohop multithreaded to time
#   KILL_EVERY   seconds (30) between two executors that are killed under contenders +killed, which
#                are added to those that are timed if it is set; KILL_SEED (1) chooses them
#                OUT/gpu_session.json says whether the executors' memory grows from round to round
#   CPU_APPS     applications by which the CPU is asked (4), CPU_CORES of each
#   DSDGEN       the folder tools of the TPC's own kit, built, with which large tables are
#                written much faster; see tpcds_tables.py
#   TIGHT        RAPIDS' share of the GPU's memory (0.06) and TIGHT_POOL (2800m) for +tight
# For etl SCALE, CONTENDERS, ROUNDS, QUERIES (some of clustered, sorted, joined and rows), QUERY_LIMIT,
# APPEND and DSDGEN as for tpcds.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
usage() {
  sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
}
for file in "$here"/rapids/*.sh; do
  # shellcheck source=/dev/null
  . "$file"
done

command="${1:-}"
case "$command" in
  pack)
    [ $# -eq 2 ] || usage
    pack "$2"
    ;;
  check | paths | bench | blocks | form | between | tax | kudo | tiers | demo | proof | doctor | checksums | memory | neighbour | pressure | nodes | rows | faults | kills | tpch | tpcds | etl)
    [ $# -eq 4 ] || usage
    prepare "$2" "$3" "$4"
    "$command"
    ;;
  *) usage ;;
esac
