package io.zerohop.spark.doctor;

import io.zerohop.device.posix.UcpLibrary;
import io.zerohop.shuffle.transport.ucx.engine.LibucxRelease;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLibrary;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.util.Optional;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * UCX is looked at, and where executors would open a port for it, it is also started as they start
 * it, tried, and ended.
 */
final class UcxCheck implements Check {
  private static final String INSTALL =
      "install libucx on every node (Debian, Ubuntu: libucx0; RHEL: ucx; or openucx/ucx's packages"
          + " with CUDA) where ldconfig or LD_LIBRARY_PATH finds libucp.so.0; it is needed between"
          + " nodes only";
  private static final String FIT =
      "name a jucx jar of the kind of libucx by spark.zerohop.ucx.jucx, or install another libucx"
          + " (docs/rdma.md, 'jucx and libucx')";

  private final Supplier<UcxLibrary> library;
  private final IntSupplier version;
  private final Trial trial;
  private final boolean gpus;
  private final boolean adapters;

  /**
   * Whether and how UCX is tried.
   *
   * @param starter starts it
   * @param oneSided whether executors here take gets
   * @param obstacle why it may not be started; null if it may be
   * @param wanted whether executors would use it
   */
  record Trial(UcxStarter starter, boolean oneSided, Finding obstacle, boolean wanted) {}

  /**
   * @param library looks at libucx and opens nothing
   * @param version of the libucx that was loaded, once it was looked at
   * @param trial how UCX is tried
   * @param gpus whether there is a GPU
   * @param adapters whether there is an RDMA adapter
   */
  UcxCheck(
      final Supplier<UcxLibrary> library,
      final IntSupplier version,
      final Trial trial,
      final boolean gpus,
      final boolean adapters) {
    this.library = library;
    this.version = version;
    this.trial = trial;
    this.gpus = gpus;
    this.adapters = adapters;
  }

  /** Of the libucx that this process has loaded. */
  static int loadedVersion() {
    return UcpLibrary.version();
  }

  @Override
  public void run(final Notes notes) {
    if (trial.obstacle() == null) {
      start(notes);
      return;
    }
    try {
      notes.add(library(library.get().reachesGpuMemory()));
    } catch (final UcxException e) {
      notes.add(missing(e));
    }
    notes.add(trial.obstacle());
  }

  private Finding missing(final UcxException e) {
    return new Finding(Item.LIBUCX, Verdict.FAIL.where(trial.wanted()), e.getMessage(), INSTALL);
  }

  private void start(final Notes notes) {
    final UcxEngine engine;
    try {
      engine = trial.starter().start(trial.oneSided(), () -> {});
    } catch (final UcxException e) {
      notes.add(missing(e));
      notes.add(Finding.skip(Item.JUCX, "libucx does not start"));
      return;
    }
    try {
      notes.add(library(engine.reachesGpuMemory()));
      LoopbackTest.run(engine);
      notes.add(Finding.ok(Item.JUCX, engine.describe() + ": moves bytes"));
    } catch (final UcxException e) {
      notes.add(Finding.fail(Item.JUCX, engine.describe() + ": " + e.getMessage(), FIT));
    } finally {
      if (!engine.end()) {
        notes.add(
            Finding.fail(
                Item.JUCX, "UCX's thread did not end", "see UCX_LOG_LEVEL=info; end this process"));
      }
    }
  }

  private Finding library(final boolean reachesGpuMemory) {
    final int number = version.getAsInt();
    final String name =
        "libucx " + (number >> 16) + "." + (number >> 8 & 0xff) + "." + (number & 0xff);
    if (gpus && !reachesGpuMemory) {
      return new Finding(
          Item.LIBUCX,
          Verdict.WARN.where(trial.wanted()),
          name + " without CUDA: GPU memory of other nodes comes over pinned host memory",
          "install a libucx built with CUDA (openucx/ucx's packages, or HPC-X)");
    }
    final Optional<LibucxRelease> release = LibucxRelease.of(number);
    if (release.isEmpty()) {
      return new Finding(
          Item.LIBUCX,
          Verdict.WARN.where(trial.wanted()),
          name + " is not in the table of releases that are known",
          "see the log's first-contact lines ('is read by UCX'); known are 1.13 to 1.23");
    }
    return switch (release.get().gets()) {
      case ONE_SIDED -> Finding.ok(Item.LIBUCX, name + ": gets are one-sided over an adapter");
      case EMULATED_UNLESS_SET ->
          Finding.ok(
              Item.LIBUCX,
              name
                  + ": gets are one-sided over an adapter with PROTO_ENABLE=n, which Zerohop sets");
      case NONE ->
          new Finding(
              Item.LIBUCX,
              adapters ? Verdict.WARN.where(trial.wanted()) : Verdict.OK,
              name + ": as packaged it has no verbs, so adapters are not used",
              adapters ? "install a libucx with verbs, such as openucx/ucx's packages" : "");
    };
  }
}
