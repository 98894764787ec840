package io.zerohop.spark.doctor;

import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import java.util.List;

/** Checks RDMA ports, and whether they reach GPU memory. */
final class AdapterCheck implements Check {
  private final boolean wanted;
  private final boolean present;
  private final AdapterChoice choice;
  private final List<Boolean> dmaBuf;
  private final boolean peermem;

  /**
   * @param wanted whether executors would use UCX
   * @param present whether the machine has an adapter
   * @param choice the ports that an executor would use
   * @param dmaBuf of each GPU, whether the driver hands its memory out by dma-buf
   * @param peermem whether NVIDIA's module is loaded
   */
  AdapterCheck(
      final boolean wanted,
      final boolean present,
      final AdapterChoice choice,
      final List<Boolean> dmaBuf,
      final boolean peermem) {
    this.wanted = wanted;
    this.present = present;
    this.choice = choice;
    this.dmaBuf = List.copyOf(dmaBuf);
    this.peermem = peermem;
  }

  @Override
  public void run(final Notes notes) {
    if (!present) {
      notes.add(
          Finding.skip(
              Item.ADAPTERS, "no RDMA adapter in /sys/class/infiniband: UCX goes over TCP"));
      notes.add(Finding.skip(Item.GPUDIRECT, "there is no RDMA adapter"));
      return;
    }
    notes.add(
        choice.ports().isEmpty()
            ? Finding.of(
                Item.ADAPTERS,
                Verdict.WARN.where(wanted),
                choice.describe(),
                "bring a link up (ibstat), or give the container /dev/infiniband")
            : Finding.ok(Item.ADAPTERS, choice.describe()));
    notes.add(gpuDirect());
  }

  private Finding gpuDirect() {
    if (dmaBuf.isEmpty()) {
      return Finding.skip(Item.GPUDIRECT, "there is no GPU");
    }
    final boolean all = dmaBuf.stream().allMatch(Boolean::booleanValue);
    if (peermem || all) {
      return Finding.ok(
          Item.GPUDIRECT,
          (peermem ? "nvidia-peermem is loaded" : "nvidia-peermem is not loaded")
              + (all ? ", and GPU memory is handed out by dma-buf" : ""));
    }
    return Finding.of(
        Item.GPUDIRECT,
        Verdict.WARN.where(wanted),
        "neither nvidia-peermem nor dma-buf: adapters do not reach GPU memory",
        "modprobe nvidia-peermem, or use NVIDIA's open kernel module with Linux 5.12 or later");
  }
}
