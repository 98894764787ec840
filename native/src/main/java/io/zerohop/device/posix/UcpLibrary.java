package io.zerohop.device.posix;

/** The {@code libucp} of this process. */
public final class UcpLibrary {
  private UcpLibrary() {}

  /**
   * Its version as three numbers of a byte each, the major one first: {@code 0x010d01} is 1.13.1.
   *
   * @return 0 if none is loaded
   */
  public static native int version();
}
