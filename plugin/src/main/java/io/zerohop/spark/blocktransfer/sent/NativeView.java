package io.zerohop.spark.blocktransfer.sent;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import org.agrona.UnsafeAccess;

/** Memory outside the heap as a buffer, which neither owns nor keeps it. */
final class NativeView {
  private static final ByteBuffer ANY = ByteBuffer.allocateDirect(1);
  private static final long ADDRESS = offset("address");
  private static final long CAPACITY = offset("capacity");

  private NativeView() {}

  /** Bytes that begin at an address, and have to stay as long as the buffer is used. */
  static ByteBuffer of(final long address, final int length) {
    final ByteBuffer view = ANY.duplicate();
    UnsafeAccess.UNSAFE.putLong(view, ADDRESS, address);
    UnsafeAccess.UNSAFE.putInt(view, CAPACITY, length);
    return view.limit(length).position(0);
  }

  private static long offset(final String field) {
    try {
      return UnsafeAccess.UNSAFE.objectFieldOffset(Buffer.class.getDeclaredField(field));
    } catch (final NoSuchFieldException e) {
      throw new ExceptionInInitializerError(e);
    }
  }
}
