package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader.UcxLibrary;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Checks UCX. If executors would open a port for it, it is also started as they start it, tried,
 * and stopped.
 *
 * @param library looks at libucx and opens nothing
 * @param version of the libucx that was loaded, once it was looked at
 * @param trial how UCX is tried
 * @param gpus whether there is a GPU
 */
record UcxCheck(Supplier<UcxLibrary> library, IntSupplier version, Trial trial, boolean gpus)
    implements Check {
  private static final String INSTALL =
      "install libucx 1.19 or later on every node (openucx/ucx's release packages, with CUDA, or"
          + " HPC-X) where ldconfig or LD_LIBRARY_PATH finds"
          + " libucp.so.0; it is needed for gets between nodes only";
  private static final String FIT =
      "name a jucx jar of the kind of libucx by spark.zerohop.ucx.jucx, or install another libucx"
          + " (docs/rdma.md, 'jucx and libucx')";

  /**
   * The extent to which UCX is tried.
   *
   * @param obstacle why it may not be started
   * @param wanted whether executors would use it
   */
  record Trial(UcxStarter starter, @Nullable Finding obstacle, boolean wanted) {}

  @Override
  public void run(final Notes notes) {
    final Finding obstacle = trial.obstacle();
    if (obstacle == null) {
      start(notes);
      return;
    }
    try {
      notes.add(library(library.get().reachesGpuMemory()));
    } catch (final UcxException e) {
      notes.add(missing(e));
    }
    notes.add(obstacle);
  }

  private Finding missing(final UcxException e) {
    return Item.LIBUCX.found(Verdict.FAIL.where(trial.wanted()), e.message().remedy(INSTALL));
  }

  private void start(final Notes notes) {
    final UcxEngine engine;
    try {
      engine = trial.starter().start(() -> {});
    } catch (final UcxException e) {
      notes.add(missing(e));
      notes.add(Item.JUCX.skip("libucx does not start"));
      return;
    }
    try {
      notes.add(library(engine.reachesGpuMemory()));
      LoopbackTest.run(engine);
      notes.add(Item.JUCX.ok(engine.describe() + ": moves bytes"));
    } catch (final UcxException e) {
      notes.add(
          Item.JUCX.fail(
              Message.of("UCX moves no bytes").at(engine.describe()).remedy(FIT).because(e)));
    } finally {
      if (!engine.end()) {
        notes.add(
            Item.JUCX.fail("UCX's thread did not end", "see UCX_LOG_LEVEL=info; end this process"));
      }
    }
  }

  private Finding library(final boolean reachesGpuMemory) {
    final int number = version.getAsInt();
    final String name =
        "libucx " + (number >> 16) + "." + (number >> 8 & 0xff) + "." + (number & 0xff);
    if (gpus && !reachesGpuMemory) {
      return Item.LIBUCX.found(
          Verdict.WARN.where(trial.wanted()),
          name + " without CUDA: GPU memory of other nodes is sent over pinned host memory",
          "install a libucx built with CUDA (openucx/ucx's packages, or HPC-X)");
    }
    return Item.LIBUCX.ok(name);
  }
}
