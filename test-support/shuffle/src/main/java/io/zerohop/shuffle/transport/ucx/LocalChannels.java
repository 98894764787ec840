package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.BreakableLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Control channels of nodes in one process, with what can go wrong on them. */
public final class LocalChannels {
  private final Map<Integer, Channel> channels = new ConcurrentHashMap<>();
  private final AtomicInteger nextPort = new AtomicInteger(1000);
  private final AtomicLong nextLink = new AtomicLong();
  private final Set<Link> links = ConcurrentHashMap.newKeySet();

  /** Sees each question as it passes; may throw to refuse it. */
  public volatile java.util.function.Consumer<ByteBuffer> onQuestion = question -> {};

  /** The kind of the next question that is to come twice, its second answer being the one; or 0. */
  volatile byte askedTwice;

  /** While set, nobody answers and nobody is told. */
  volatile boolean silent;

  /** While set, connections are accepted and reset before either side has proved itself. */
  volatile boolean resets;

  /** While set, who connects has no thread for it. */
  public volatile boolean busy;

  public ControlChannel open(final ControlService service) {
    final Channel channel = new Channel(nextPort.incrementAndGet(), service);
    channels.put(channel.port, channel);
    return channel;
  }

  /** Breaks all links that stand now. */
  public void breakLinks() {
    List.copyOf(links).forEach(Link::close);
  }

  public int openLinks() {
    return links.size();
  }

  private final class Channel implements ControlChannel {
    private final int port;
    private final ControlService service;

    Channel(final int port, final ControlService service) {
      this.port = port;
      this.service = service;
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
      if (busy) {
        throw new ExchangeException(Reason.BUSY, "there is no thread for it");
      }
      if (silent) {
        throw new ExchangeException(Reason.TIMEOUT, "nobody answers at " + to);
      }
      if (resets) {
        throw new ExchangeException(Reason.CLOSED, "the connection to " + to + " was reset");
      }
      final Channel other = channels.get(to);
      if (other == null) {
        throw new ExchangeException(Reason.REFUSED, "nobody listens at " + to);
      }
      final Link link = new Link(this, other);
      links.add(link);
      return link;
    }

    @Override
    public void close() {
      channels.remove(port);
      for (final Link link : List.copyOf(links)) {
        if (link.from == this || link.to == this) {
          link.close();
        }
      }
    }
  }

  private final class Link extends BreakableLink {
    private final long id = nextLink.incrementAndGet();
    private final Channel from;
    private final Channel to;

    Link(final Channel from, final Channel to) {
      this.from = from;
      this.to = to;
    }

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      final CompletableFuture<ByteBuffer> answer = begin();
      if (answer.isDone()) {
        return answer;
      }
      try {
        onQuestion.accept(question.duplicate());
        if (question.get(question.position()) == askedTwice) {
          askedTwice = 0;
          final ByteBuffer again = question.duplicate();
          to.service.asked(id, question, first -> to.service.asked(id, again, answer::complete));
        } else if (!silent && alive()) {
          to.service.asked(id, question, answer::complete);
        }
      } catch (final RuntimeException e) {
        answer.completeExceptionally(
            new ZerohopException(ZerohopException.Category.RETRY, e.getMessage(), e));
      }
      return answer;
    }

    @Override
    protected ExchangeException closed(final Throwable cause) {
      return new ExchangeException(Reason.CLOSED, "the link broke", cause);
    }

    @Override
    public void close() {
      if (breakNow()) {
        links.remove(this);
        to.service.disconnected(id);
      }
    }
  }
}
