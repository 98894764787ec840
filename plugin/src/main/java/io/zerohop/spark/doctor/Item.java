package io.zerohop.spark.doctor;

import java.util.Locale;

/**
 * Everything that the doctor looks at, in the order of its report. docs/doctor.md is made of it.
 */
public enum Item {
  JAVA(
      "Java's version and the machine's architecture",
      "fail: below 17. warn: not x86-64, for which GPU memory has no binding"),
  GLIBC(
      "the C library, beside the newest symbol that the jar's native libraries ask for",
      "fail: older than that"),
  LIBRARY(
      "the native library is unpacked and loaded as an executor does it",
      "fail: no library for this system, or a temporary folder that is not writable or `noexec`"),
  MEMFD(
      "shared memory is made, sealed, mapped as a peer maps it, and read",
      "fail: any of it is refused. warn: a kernel before 5.1, which cannot seal against writers"),
  MEMLOCK(
      "`ulimit -l`, and whether the process has `CAP_IPC_LOCK`",
      "warn: less than 1 GiB where there is an RDMA adapter, which counts registered memory"),
  FILES("`ulimit -n`", "warn: below 4096: each peer's segment takes a descriptor, as sockets do"),
  PROCESSES(
      "`ulimit -u` and the tightest `pids.max` of the control groups, beside what is in use",
      "warn: fewer than 512 are left. fail: fewer than 64"),
  MEMORY(
      "memory that is left on the machine or under the tightest control group",
      "warn: less than 1 GiB. fail: less than 64 MiB, the smallest pool"),
  SHM(
      "free room in `/dev/shm`, where UCX keeps queues between processes of a host",
      "fail: full. warn: less than 64 MiB"),
  SOCKETS(
      "the folder by which executors of a node find each other is opened, and a socket served in"
          + " it",
      "fail: another user's, open to others, a link, or not writable"),
  PEERS(
      "two nodes in this process share memory by that folder; one reads the other's blocks in"
          + " place",
      "fail: blocks would be staged"),
  DRIVER(
      "the CUDA driver is loaded and counts the GPUs that this process sees",
      "fail: RAPIDS is configured, and there is none. warn: the machine has NVIDIA GPUs that the"
          + " process does not see"),
  KERNELS(
      "each GPU is opened with the jar's kernels", "fail: the jar has none, or none for this GPU"),
  NVLINK(
      "NVML's matrix of links between all GPUs of the machine",
      "warn: GPUs that do not reach each other's memory"),
  P2P(
      "each GPU exports memory by descriptor, each other one maps it and copies; bytes are"
          + " compared",
      "fail: a pair that the driver calls peers does not. warn: it says that they are none"),
  LIBUCX(
      "libucx is loaded and asked for its version: [1.19 or later](rdma.md#which-libucx) is used",
      "fail: it cannot be loaded, or is older. warn: it knows no CUDA where there are GPUs"),
  JUCX(
      "where executors use UCX: it is started, and jucx moves 4 KiB through libucx, as each"
          + " executor does at its start",
      "fail: they do not fit, or root is to load a jar that others can change"),
  ADAPTERS(
      "the RDMA ports that an executor would use, and which it would leave out",
      "warn: there are adapters, and none can be used"),
  GPUDIRECT(
      "`nvidia-peermem` or dma-buf, by which an adapter reaches GPU memory",
      "warn: an adapter and a GPU, and neither"),
  SPARK("Spark's version", "warn: not one of 3.5 to 4.2"),
  SPARK_MEMBERS(
      "whether this Spark has every class and member that Zerohop uses: vendors' may lack some",
      "fail: one without which nothing works. warn: one that a single feature needs"),
  RAPIDS(
      "the RAPIDS Accelerator's version, as the driver looks for it",
      "fail: not a release whose classes are known. warn: configured, and its jar is not there"),
  MANAGER(
      "`spark.shuffle.manager`, and each key of Zerohop's",
      "fail: a value that is not valid. warn: another manager, switched off, or a key that nobody"
          + " knows"),
  STEPS_ASIDE(
      "settings with which Zerohop leaves shuffles to Spark: external shuffle service, other"
          + " storage of map outputs",
      "fail: one of them is on"),
  GPU_SHUFFLES(
      "settings that keep RAPIDS' shuffles away from GPU memory: authentication, codec, mode, a"
          + " missing plugin",
      "warn: one of them does"),
  OTHER_NODES(
      "settings that decide by which path blocks of other nodes come",
      "warn: they are staged, or encryption forbids UCX although `spark.zerohop.ucx.trustedNetwork`"
          + " is true"),
  PORT(
      "`spark.zerohop.port` and those behind it, on this host, where executors open it",
      "fail: all of them are taken, or may not be used"),
  REACH(
      "each executor connects to the block manager's port of all others (running application only)",
      "fail: a port that does not answer, such as one that a firewall blocks"),
  EXECUTORS(
      "whether executors come, and take a task of the doctor's (running application only)",
      "fail: none comes, or its task fails. warn: one is busy"),
  VERSIONS(
      "the release of Zerohop in the driver and in each executor (running application only)",
      "fail: they differ"),
  SIZES(
      "what `auto` comes to on this machine, in host and GPU memory",
      "warn: less than 512 MiB, with what makes it more"),
  RATES("GB/s of every path, beside what a machine of its kind has", "warn: less than half of it");

  private final String looks;
  private final String verdicts;

  Item(final String looks, final String verdicts) {
    this.looks = looks;
    this.verdicts = verdicts;
  }

  /** Its name in reports. */
  public String key() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** What is looked at, in Markdown. */
  String looks() {
    return looks;
  }

  /** What makes it a warning or a failure, in Markdown. */
  String verdicts() {
    return verdicts;
  }
}
