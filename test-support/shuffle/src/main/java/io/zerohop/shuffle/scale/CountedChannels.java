package io.zerohop.shuffle.scale;

import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Control channels of executors in one process, which count what passes. Thread safe. */
final class CountedChannels {
  private final Map<Integer, Channel> channels = new ConcurrentHashMap<>();
  private final AtomicInteger nextPort = new AtomicInteger();
  private final AtomicLong nextLink = new AtomicLong();

  Channel open(final ControlService service) {
    final Channel channel = new Channel(nextPort.incrementAndGet(), service);
    channels.put(channel.port, channel);
    return channel;
  }

  /** What one executor has asked others. */
  final class Channel implements ControlChannel {
    private final int port;
    private final ControlService service;
    private final Set<Link> outgoing = ConcurrentHashMap.newKeySet();
    private final Set<Link> incoming = ConcurrentHashMap.newKeySet();
    private final AtomicLong connects = new AtomicLong();
    private final AtomicLong questions = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();

    private Channel(final int port, final ControlService service) {
      this.port = port;
      this.service = service;
    }

    /** Links by which it may ask now. */
    int links() {
      return outgoing.size();
    }

    /** How often it has connected. */
    long connects() {
      return connects.get();
    }

    /** Questions that it has asked. */
    long questions() {
      return questions.get();
    }

    /** Questions that are not answered yet. */
    int underWay() {
      return outgoing.stream().mapToInt(link -> link.open.size()).sum();
    }

    /** Bytes of its questions and their answers. */
    long bytes() {
      return bytes.get();
    }

    @Override
    public int port() {
      return port;
    }

    @Override
    public long strangers() {
      return 0;
    }

    @Override
    public ControlLink connect(final String host, final int to, final Duration limit) {
      final Channel other = channels.get(to);
      if (other == null) {
        throw new ExchangeException(Reason.REFUSED, "nobody listens at " + to);
      }
      connects.incrementAndGet();
      final Link link = new Link(this, other);
      outgoing.add(link);
      other.incoming.add(link);
      return link;
    }

    @Override
    public void close() {
      channels.remove(port);
      List.copyOf(outgoing).forEach(Link::close);
      List.copyOf(incoming).forEach(Link::close);
    }
  }

  private final class Link implements ControlLink {
    private final long id = nextLink.incrementAndGet();
    private final Channel from;
    private final Channel to;
    private final Set<CompletableFuture<ByteBuffer>> open = ConcurrentHashMap.newKeySet();
    private final List<Runnable> onClosed = new ArrayList<>();
    private boolean closed;

    Link(final Channel from, final Channel to) {
      this.from = from;
      this.to = to;
    }

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      open.add(answer);
      answer.whenComplete((got, failure) -> open.remove(answer));
      if (!alive()) {
        answer.completeExceptionally(new ExchangeException(Reason.CLOSED, "the link is closed"));
        return answer;
      }
      from.questions.incrementAndGet();
      from.bytes.addAndGet(question.remaining());
      to.service.asked(
          id,
          question,
          got -> {
            from.bytes.addAndGet(got.remaining());
            answer.complete(got);
          });
      return answer;
    }

    @Override
    public synchronized boolean alive() {
      return !closed;
    }

    @Override
    public void onClosed(final Runnable action) {
      synchronized (this) {
        if (!closed) {
          onClosed.add(action);
          return;
        }
      }
      action.run();
    }

    @Override
    public void close() {
      final List<Runnable> actions;
      synchronized (this) {
        if (closed) {
          return;
        }
        closed = true;
        actions = List.copyOf(onClosed);
      }
      from.outgoing.remove(this);
      to.incoming.remove(this);
      to.service.disconnected(id);
      for (final CompletableFuture<ByteBuffer> answer : open) {
        answer.completeExceptionally(new ExchangeException(Reason.CLOSED, "the link broke"));
      }
      actions.forEach(Runnable::run);
    }
  }
}
