package io.zerohop.device;

/**
 * Tells whether a device's segments can be passed to other nodes of one NVLink fabric, by {@link
 * Segment#exportFabric}. Immutable.
 *
 * @param clique cluster and clique as NVML names them, 32 hexadecimal digits, a slash and a number;
 *     devices of one clique reach one another. Empty if segments cannot be handed over
 * @param absence why not, for a log; empty if they can
 */
public record FabricReach(String clique, String absence) {

  /** Why not. */
  public static FabricReach none(final String absence) {
    return new FabricReach("", absence);
  }

  /** Whether segments have fabric handles. */
  public boolean possible() {
    return !clique.isEmpty();
  }
}
