package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Carrier;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.remote.Carrier.MessageSizes;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.UnsafeAccess;

/**
 * Carriers of the executors of one process: messages are copies, made by who sends. Thread safe.
 */
final class LocalCarriers {
  private static final MessageSizes SIZES = new MessageSizes(1 << 20, 4);

  private final LocalChannels channels = new LocalChannels();
  private final Map<Long, LocalCarrier> carriers = new ConcurrentHashMap<>();
  private final Map<String, LocalCarrier> executors = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong();

  /** What starts that of an executor. */
  CarrierStarter of(final String executorId) {
    return (threads, slabs, clock) -> {
      final LocalCarrier started = new LocalCarrier(next.incrementAndGet());
      carriers.put(started.id, started);
      executors.put(executorId, started);
      return started;
    };
  }

  private final class LocalCarrier implements Carrier {
    private final long id;
    private volatile Arrivals arrivals;
    private volatile ControlChannel channel;

    LocalCarrier(final long id) {
      this.id = id;
    }

    @Override
    public byte[] address() {
      return ByteBuffer.allocate(Long.BYTES).putLong(id).array();
    }

    @Override
    public Road connect(final byte[] address) {
      final LocalCarrier to = carriers.get(ByteBuffer.wrap(address).getLong());
      if (to == null) {
        throw new CarrierException("there is no such executor", null);
      }
      return new LocalRoad(to);
    }

    @Override
    public MessageSizes sizes() {
      return SIZES;
    }

    @Override
    public void serve(final Arrivals receiver, final ControlService service) {
      arrivals = receiver;
      channel = channels.open(service);
    }

    @Override
    public ControlLink link(final BlockSource owner, final Duration limit) {
      return channel.connect("", executors.get(owner.executorId()).channel.port(), limit);
    }

    @Override
    public void maintain() {}

    @Override
    public long strangers() {
      return 0;
    }

    @Override
    public long savedBytes() {
      return 0;
    }

    @Override
    public String describe() {
      return "within a process";
    }

    @Override
    public boolean end() {
      carriers.remove(id);
      channel.close();
      return true;
    }
  }

  private record LocalRoad(LocalCarrier to) implements Road {
    @Override
    public void send(
        final long id,
        final long offset,
        final long address,
        final long bytes,
        final Completion done) {
      final long place = to.arrivals.arriving(id, offset, bytes, () -> {});
      if (place != 0) {
        UnsafeAccess.UNSAFE.copyMemory(address, place, bytes);
        to.arrivals.arrived(id, offset, bytes, null);
      }
      done.done(null);
    }

    @Override
    public void lost(final long transfer) {
      to.arrivals.lost(transfer, "its owner could not send it");
    }

    @Override
    public boolean alive() {
      return true;
    }

    @Override
    public void close() {}
  }
}
