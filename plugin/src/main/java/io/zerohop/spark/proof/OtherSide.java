package io.zerohop.spark.proof;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The host at the other end of a connection, whose {@link Listener} starts its workers. */
final class OtherSide implements Side {
  /** Beside the time that the other side itself waits for its worker. */
  private static final Duration WAY = Duration.ofSeconds(20);

  private static final Duration START = Duration.ofSeconds(90);

  private final ProvenChannel channel;
  private final String name;

  OtherSide(final ProvenChannel channel, final String name) {
    this.channel = channel;
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public HostFacts facts() {
    return HostFacts.parse(ask(START, List.of(Listener.FACTS)));
  }

  @Override
  public Worker start(final MemoryKind kind) {
    final List<String> answer = ask(START, List.of(Listener.START, kind.key()));
    return new Remote(answer.get(0), answer.get(1), answer.get(2));
  }

  private List<String> ask(final Duration limit, final List<String> question) {
    try {
      channel.send(question);
      return Words.said(channel.receive(limit));
    } catch (final IOException e) {
      throw new LostException("the other side is lost: " + e.getMessage(), e);
    }
  }

  /** Its worker of that number. */
  private final class Remote implements Worker {
    private final String number;
    private final String address;
    private final String description;
    private boolean closed;

    Remote(final String number, final String address, final String description) {
      this.number = number;
      this.address = address;
      this.description = description;
    }

    @Override
    public String address() {
      return address;
    }

    @Override
    public String describe() {
      return description;
    }

    @Override
    public List<String> ask(final Duration limit, final String... words) {
      final List<String> question = new ArrayList<>();
      question.addAll(List.of(Listener.ASK, number, Long.toString(limit.toMillis())));
      question.addAll(List.of(words));
      return OtherSide.this.ask(limit.plus(WAY), question);
    }

    private List<String> tell(final String what) {
      return OtherSide.this.ask(WAY, List.of(what, number));
    }

    @Override
    public void stop() {
      tell(Listener.STOP);
    }

    @Override
    public void resume() {
      tell(Listener.RESUME);
    }

    @Override
    public boolean isStopped() {
      return Boolean.parseBoolean(tell(Listener.STATE).get(0));
    }

    @Override
    public void kill() {
      tell(Listener.KILL);
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        tell(Listener.END);
      }
    }
  }
}
