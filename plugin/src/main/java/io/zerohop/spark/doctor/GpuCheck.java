package io.zerohop.spark.doctor;

import io.zerohop.device.Device;
import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.Topology.Reach;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.cuda.TopologyReader;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Checks the driver, the kernels, the links between GPUs, and whether they map each other's memory.
 *
 * @param wanted whether RAPIDS is configured
 * @param onTheBus counts the NVIDIA GPUs that the machine has, seen or not, which may hang
 */
record GpuCheck(Gpus gpus, boolean wanted, LongSupplier onTheBus) implements Check {
  private static final int TRIAL_BYTES = 2 << 20;
  private static final String SEE_DRIVER =
      "install NVIDIA's driver, or give the container the GPUs (--gpus all, the device plugin of"
          + " Kubernetes, CUDA_VISIBLE_DEVICES)";
  private static final String REBUILD =
      "build the jar with a CUDA toolkit that knows this GPU, with its compute capability in"
          + " ZEROHOP_CUDA_ARCHS (native/src/main/cuda/build.sh); until then RAPIDS' shuffles go"
          + " through host memory";

  @Override
  public void run(final Notes notes) {
    final Message absence = gpus.absence();
    if (absence != null) {
      notes.add(driverMissing(absence));
      notes.add(Item.KERNELS.skip(jarOnly()));
      return;
    }
    notes.add(Item.DRIVER.ok("this process sees " + gpus.count() + " GPUs"));
    final List<Gpus.Gpu> open = new ArrayList<>();
    try {
      open(notes, open);
      final Topology topology = gpus.topology();
      notes.add(links(topology));
      if (open.size() > 1) {
        pairs(notes, open, topology);
      } else {
        notes.add(Item.P2P.skip("this process uses one GPU"));
      }
    } finally {
      open.forEach(Gpus.Gpu::close);
    }
  }

  private Finding driverMissing(final Message absence) {
    if (wanted) {
      return Item.DRIVER.fail(
          Message.of("RAPIDS is configured, and this process has no GPU")
              .because(absence)
              .orRemedy(SEE_DRIVER));
    }
    final long there = onTheBus.getAsLong();
    return there > 0
        ? Item.DRIVER.warn(
            Message.of("the machine has " + there + " NVIDIA GPUs, and this process can use none")
                .because(absence)
                .orRemedy(SEE_DRIVER))
        : Item.DRIVER.skip(Message.of("no GPU is needed").because(absence.happened()));
  }

  private Message jarOnly() {
    final Message missing = gpus.missingKernels();
    return missing == null ? Message.of("the jar has kernels, and there is no GPU") : missing;
  }

  private void open(final Notes notes, final List<Gpus.Gpu> open) {
    for (int ordinal = 0; ordinal < gpus.count(); ordinal++) {
      try {
        final Gpus.Gpu gpu = gpus.open(ordinal);
        open.add(gpu);
        notes.add(Item.KERNELS.ok(gpu.description()));
      } catch (final ZerohopException e) {
        notes.add(Item.KERNELS.fail(e, REBUILD));
      }
    }
  }

  private static Finding links(final Topology topology) {
    final int count = topology.gpus().size();
    if (count < 2) {
      return Item.NVLINK.skip(
          count == 0
              ? Message.of("NVML shows no GPU")
                  .remedy("see whether its library libnvidia-ml.so.1 is there")
              : Message.of("there is one GPU"));
    }
    final List<String> rows = new ArrayList<>();
    boolean all = true;
    for (int i = 0; i < count; i++) {
      final StringBuilder row = new StringBuilder();
      for (int j = 0; j < count; j++) {
        final boolean reached = i == j || topology.peerAccess()[i][j];
        all &= reached;
        final int links = topology.links()[i][j];
        row.append(i == j ? " -" : !reached ? " NS" : links > 0 ? " NV" + links : " PCI");
      }
      rows.add(row.substring(1));
    }
    final String text =
        count + " GPUs, " + topology.shape() + ", links: " + String.join(" | ", rows);
    return all
        ? Item.NVLINK.ok(text)
        : Item.NVLINK.warn(
            text
                + "; pairs with NS (as in nvidia-smi topo -p2p) cannot map each other's memory, so"
                + " their batches go through host memory or are sent",
            "nvidia-smi topo -p2p r says why; virtual machines need NVLink passed through, and PCIe"
                + " switches ACS off");
  }

  private static void pairs(final Notes notes, final List<Gpus.Gpu> open, final Topology topology) {
    final List<String> apart = new ArrayList<>();
    int together = 0;
    for (final Gpus.Gpu owner : open) {
      for (final Gpus.Gpu reader : open) {
        if (owner == reader) {
          continue;
        }
        final String pair = reader.device().name() + " from " + owner.device().name();
        if (topology.reach(reader.uuid(), owner.uuid()) == Reach.HOST) {
          apart.add(pair);
          continue;
        }
        try (GpuPair gpus = new GpuPair(owner.device(), reader.device(), TRIAL_BYTES)) {
          gpus.verify();
          together++;
        } catch (final ZerohopException e) {
          notes.add(
              Item.P2P.fail(
                  Message.of("a GPU cannot read another's memory")
                      .at(pair)
                      .because(e)
                      .orRemedy(
                          "look for the pair in nvidia-smi topo -p2p r, and for errors of the"
                              + " driver in dmesg")));
        }
      }
    }
    if (together > 0) {
      notes.add(
          Item.P2P.ok(together + " of " + open.size() * (open.size() - 1) + " pairs map and copy"));
    }
    if (!apart.isEmpty()) {
      notes.add(
          Item.P2P.warn(
              "no peer access, so batches go through host memory or are sent: "
                  + String.join(", ", apart),
              "show executors GPUs that are linked (nvidia-smi topo -m)"));
    }
  }

  /** The GPUs that this process can use, as executors do. */
  interface Gpus {

    /** Returns why none can be used; null if one can. */
    @Nullable Message absence();

    /** Returns why the jar has no kernels; null if it has. */
    @Nullable Message missingKernels();

    int count();

    /** Of all GPUs of the machine. */
    Topology topology();

    /**
     * Opens one, with its kernels.
     *
     * @throws ZerohopException if there is no such GPU, or no kernel for it
     */
    Gpu open(int ordinal);

    /**
     * One GPU.
     *
     * @param device owned by whoever opened it
     * @param uuid as the topology has it
     * @param dmaBuf whether adapters may reach its memory by dma-buf
     */
    record Gpu(Device device, String uuid, String pciAddress, String description, boolean dmaBuf)
        implements AutoCloseable {
      @Override
      public void close() {
        device.close();
      }
    }

    final class Cuda implements Gpus {
      @Override
      public @Nullable Message absence() {
        return CudaDriver.absence();
      }

      @Override
      public @Nullable Message missingKernels() {
        return CudaDevice.missingKernels();
      }

      @Override
      public int count() {
        return CudaDriver.devices();
      }

      @Override
      public Topology topology() {
        return TopologyReader.read();
      }

      @Override
      public Gpu open(final int ordinal) {
        final CudaDevice device = new CudaDevice(ordinal, CudaDevice.DEFAULT_MULTIPROCESSORS);
        return new Gpu(
            device, device.uuid(), device.pciAddress(), device.describe(), device.dmaBufCapable());
      }
    }
  }
}
