package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.doctor.Finding.Verdict;
import java.util.Locale;

/**
 * All items that the doctor checks, in the order of docs/doctor.md, which is generated from it. A
 * report has them in the order in which they are run.
 */
public enum Item {
  JAVA(
      "Java's version and the machine's architecture",
      "fail: below 17. warn: not x86-64: arm64 was tested on an emulator only"),
  GLIBC(
      "the C library, compared with the newest symbol that the jar's native libraries ask for",
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
      "`ulimit -u` and the tightest `pids.max` of the control groups, compared with their use",
      "warn: fewer than 512 are free. fail: fewer than 64"),
  MEMORY(
      "free memory of the machine or of the tightest control group",
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
  KEEPER(
      "with `spark.zerohop.keeper`: the [daemon](keeper.md#a-daemon-for-each-node) that starts"
          + " keepers, or that the first executor does",
      "warn: a daemon that does not answer, is of another version or has no room left, or a"
          + " setting without which there is no keeper"),
  DRIVER(
      "the CUDA driver is loaded and counts the GPUs that this process sees",
      "fail: RAPIDS is configured, but there is no driver. warn: the machine has NVIDIA GPUs that"
          + " the process does not see"),
  KERNELS(
      "each GPU is opened with the jar's kernels", "fail: the jar has none, or none for this GPU"),
  NVLINK(
      "NVML's matrix of links between all GPUs of the machine",
      "warn: GPUs that do not reach each other's memory"),
  P2P(
      "each GPU exports memory by descriptor, each other one maps it and copies; bytes are"
          + " compared",
      "fail: a pair that the driver calls peers fails. warn: the driver calls a pair no peers"),
  LIBUCX(
      "libucx is loaded and asked for its version: [1.19 or later](rdma.md#which-libucx) is used",
      "fail: it cannot be loaded, or is older. warn: it has no CUDA although there are GPUs"),
  JUCX(
      "where executors use UCX: it is started, and jucx moves 4 KiB through libucx, as each"
          + " executor does at its start",
      "fail: they do not match, or root would load a jar that others can change"),
  ADAPTERS(
      "the RDMA ports that an executor would use, and which it would leave out",
      "warn: there are adapters, but none can be used"),
  GPUDIRECT(
      "`nvidia-peermem` or dma-buf, by which an adapter reaches GPU memory",
      "warn: an adapter and a GPU, but neither of the two"),
  SPARK("Spark's version", "warn: not one of 3.5 to 4.2"),
  SPARK_MEMBERS(
      "whether this Spark has every class and member that Zerohop uses: vendors' may lack some",
      "fail: one without which nothing works. warn: one that a single feature needs"),
  RAPIDS(
      "the RAPIDS Accelerator's version, as the driver finds it",
      "fail: not a supported release. warn: configured, but its jar is missing"),
  MANAGER(
      "`spark.shuffle.manager`, and each key of Zerohop's",
      "fail: an invalid value. warn: another manager, Zerohop turned off, or an unknown key"),
  STEPS_ASIDE(
      "settings with which Zerohop leaves shuffles to Spark: external shuffle service, other"
          + " storage of map outputs",
      "fail: one of them is on"),
  GPU_SHUFFLES(
      "settings that keep RAPIDS' shuffles away from GPU memory: authentication, codec, mode, a"
          + " missing plugin",
      "warn: one of them does"),
  REDUCE_TASKS(
      "with RAPIDS: how [reduce tasks](tuning.md#few-large-reduce-tasks-on-gpus) get their size",
      "none: it says what decides"),
  OTHER_NODES(
      "settings that decide the path of blocks of other nodes",
      "warn: they are staged, or encryption forbids UCX although `spark.zerohop.ucx.trustedNetwork`"
          + " is true"),
  PORT(
      "`spark.zerohop.port` and the ports after it, on this host, if executors open it",
      "fail: all of them are in use, or not permitted"),
  REACH(
      "each executor connects to the block manager's port of all others (running application only)",
      "fail: a port does not answer, for example behind a firewall"),
  EXECUTORS(
      "executors register and run a task of the doctor's (running application only)",
      "fail: none registers, or its task fails. warn: one is busy, or fewer came than"
          + " the application asks for"),
  VERSIONS(
      "the release of Zerohop in the driver and in each executor (running application only)",
      "fail: they differ"),
  SIZES(
      "the pool sizes by `auto` on this machine, in host and GPU memory",
      "warn: less than 512 MiB, with the remedy"),
  RATES(
      "GB/s of host memory, of GPUs, of staged blocks and of UCX, compared with a minimum for this kind of machine",
      "warn: less than half of that minimum");

  private final String looks;
  private final String verdicts;

  Item(final String looks, final String verdicts) {
    this.looks = looks;
    this.verdicts = verdicts;
  }

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

  Finding ok(final String what) {
    return found(Verdict.OK, what, "");
  }

  Finding skip(final String why) {
    return found(Verdict.SKIP, why, "");
  }

  Finding skip(final Message why) {
    return found(Verdict.SKIP, why);
  }

  Finding warn(final String what, final String remedy) {
    return found(Verdict.WARN, what, remedy);
  }

  Finding warn(final Message message) {
    return found(Verdict.WARN, message);
  }

  Finding fail(final String what, final String remedy) {
    return found(Verdict.FAIL, what, remedy);
  }

  Finding fail(final Message message) {
    return found(Verdict.FAIL, message);
  }

  /** With this remedy, should the failure name none. */
  Finding fail(final Throwable failure, final String otherwise) {
    return fail(Message.of(failure).orRemedy(otherwise));
  }

  Finding found(final Verdict verdict, final String what, final String remedy) {
    return found(verdict, Message.of(what).remedy(remedy));
  }

  Finding found(final Verdict verdict, final Message message) {
    return new Finding(this, verdict, message);
  }
}
