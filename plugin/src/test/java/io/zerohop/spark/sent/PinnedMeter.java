package io.zerohop.spark.sent;

import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** Counts the bytes of host memory that a device has pinned for its executor. Thread safe. */
final class PinnedMeter {
  private final AtomicLong now = new AtomicLong();
  private final AtomicLong most = new AtomicLong();

  /** The same device, counted. */
  Device of(final Device device) {
    return (Device)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {Device.class},
            (self, method, arguments) -> {
              try {
                final Object result = method.invoke(device, arguments);
                return method.getName().equals("hostBuffer") ? count((HostBuffer) result) : result;
              } catch (final InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private HostBuffer count(final HostBuffer buffer) {
    final long bytes = now.addAndGet(buffer.bytes());
    most.accumulateAndGet(bytes, Math::max);
    return new HostBuffer() {
      private final AtomicBoolean closed = new AtomicBoolean();

      @Override
      public long address() {
        return buffer.address();
      }

      @Override
      public long bytes() {
        return buffer.bytes();
      }

      @Override
      public void close() {
        if (closed.compareAndSet(false, true)) {
          now.addAndGet(-buffer.bytes());
        }
        buffer.close();
      }
    };
  }

  /** From now on the most is counted anew. */
  void begin() {
    most.set(now.get());
  }

  /** Most bytes at a time since. */
  long most() {
    return most.get();
  }
}
