package io.zerohop.shuffle.transport.ucx.adapter;

/**
 * The distance of two PCI devices, in the words and by the definitions of {@code nvidia-smi topo}.
 * The nearest comes first.
 */
enum PciDistance {
  /** At most one PCIe switch is between them. */
  PIX,
  /** Several PCIe switches, and not the host bridge. */
  PXB,
  /** The host bridge, as a rule of the CPU. */
  PHB,
  /** Two host bridges of one NUMA node. */
  NODE,
  /** Two NUMA nodes, or nothing is known of them. */
  SYS;

  /** Returns whether bytes between them stay below the host bridge. */
  boolean belowHostBridge() {
    return this == PIX || this == PXB;
  }
}
