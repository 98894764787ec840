package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.MessageSizes;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import io.zerohop.shuffle.transport.remote.Sends.SendQueue;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Readers that cannot be connected, or whose connection is lost, beside others. */
class SendsTest {
  private static final byte LOST = 1;
  private static final byte OTHER = 2;

  private final TestClock clock = TestClock.standing();
  private final Config conf = Config.defaults();
  private final Devices devices = new Devices(null);
  private final RemoteThreads threads = new RemoteThreads();
  private final CountDownLatch goesOn = new CountDownLatch(1);
  private final AtomicInteger attempts = new AtomicInteger();

  /** Roads that the other reader was connected by, and whether each is good. */
  private final List<CompletableFuture<Void>> roads = new ArrayList<>();

  private Sends sends = sends(threads.answers(), threads.sends(), threads.connects());

  private Sends sends(final Executor quick, final Executor slow, final Executor connects) {
    return new Sends(
        conf,
        new Self("owner", 1, ContactListener.NONE, clock),
        RemoteServiceTest.NOTHING,
        quick,
        slow,
        connects,
        carrier(),
        new Slabs(devices.host()::hostBuffer, 0, clock),
        devices);
  }

  @AfterEach
  void close() {
    goesOn.countDown();
    threads.close();
    sends.close();
    devices.close();
  }

  private Carrier carrier() {
    return (Carrier)
        Proxy.newProxyInstance(
            Carrier.class.getClassLoader(),
            new Class<?>[] {Carrier.class},
            (self, method, arguments) ->
                switch (method.getName()) {
                  case "connect" -> connect(((byte[]) arguments[0])[0]);
                  case "sizes" -> new MessageSizes(1 << 20, 4);
                  default -> throw new AssertionError(method);
                });
  }

  private Road connect(final byte reader) throws InterruptedException {
    if (reader == LOST) {
      attempts.incrementAndGet();
      goesOn.await(50, TimeUnit.SECONDS);
      throw new CarrierException("its host does not answer", null);
    }
    final CompletableFuture<Void> lost = new CompletableFuture<>();
    roads.add(lost);
    return (Road)
        Proxy.newProxyInstance(
            Road.class.getClassLoader(),
            new Class<?>[] {Road.class},
            (self, method, arguments) -> method.getName().equals("alive") ? !lost.isDone() : null);
  }

  private CompletableFuture<ByteBuffer> ask(final long link, final ByteBuffer question) {
    final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
    sends.asked(link, question, answer::complete);
    return answer;
  }

  private static ByteBuffer get(final CompletableFuture<ByteBuffer> answer) throws Exception {
    return answer.get(30, TimeUnit.SECONDS);
  }

  private void hello(final byte reader) throws Exception {
    assertThat(get(ask(reader, Questions.hello(new byte[] {reader}, false))).get())
        .isEqualTo(Wire.GRANTED);
  }

  /** Leases blocks, of which there are none, and has them sent. */
  private CompletableFuture<ByteBuffer> send(final byte reader) throws Exception {
    final ByteBuffer open = ByteBuffer.allocate(9).put(Wire.OPEN).putInt(1).putInt(0).flip();
    final ByteBuffer opened = get(ask(reader, open));
    assertThat(opened.get()).isEqualTo(Wire.GRANTED);
    return ask(reader, Questions.send(opened.getLong(), 1));
  }

  /** More of its requests than may be sent at once, and than there are threads. */
  private List<CompletableFuture<ByteBuffer>> sendMany(final byte reader) throws Exception {
    final List<CompletableFuture<ByteBuffer>> answers = new ArrayList<>();
    for (int i = 0; i < 2 * SendQueue.AT_ONCE; i++) {
      answers.add(send(reader));
    }
    return answers;
  }

  @Test
  void othersAreServedWhileAReaderIsBeingConnected() throws Exception {
    hello(LOST);
    hello(OTHER);
    final List<CompletableFuture<ByteBuffer>> stuck = sendMany(LOST);
    assertThat(get(send(OTHER)).get()).isEqualTo(Wire.GRANTED);
    assertThat(get(ask(LOST, Questions.ping())).get()).isEqualTo(Wire.GRANTED);
    sends.maintain();
    assertThat(stuck).noneMatch(CompletableFuture::isDone);
    goesOn.countDown();
    for (final CompletableFuture<ByteBuffer> each : stuck) {
      assertThat(get(each).get()).isEqualTo(Wire.REFUSED);
    }
    assertThat(attempts).as("one for all").hasValue(1);
  }

  @Test
  void aReaderThatCouldNotBeConnectedIsNotTriedAgainAtOnce() throws Exception {
    goesOn.countDown();
    hello(LOST);
    for (int i = 0; i < 5; i++) {
      assertThat(get(send(LOST)).get()).isEqualTo(Wire.REFUSED);
    }
    assertThat(attempts).hasValue(1);
    clock.advance(conf.connectTimeout());
    assertThat(get(send(LOST)).get()).isEqualTo(Wire.REFUSED);
    assertThat(attempts).hasValue(2);
  }

  @Test
  void aReaderWhoseRoadWasLostIsConnectedAnew() throws Exception {
    hello(OTHER);
    assertThat(get(send(OTHER)).get()).isEqualTo(Wire.GRANTED);
    roads.get(0).complete(null);
    assertThat(get(send(OTHER)).get()).isEqualTo(Wire.GRANTED);
    assertThat(roads).hasSize(2);
  }

  @Test
  void aRoadThatIsLostWhileRequestsWaitIsMadeAnewForAllOfThem() throws Exception {
    final Deque<Runnable> chores = new ArrayDeque<>();
    sends = sends(Runnable::run, chores::add, Runnable::run);
    hello(OTHER);
    final List<CompletableFuture<ByteBuffer>> waiting = sendMany(OTHER);
    assertThat(waiting).noneMatch(CompletableFuture::isDone);
    roads.get(0).complete(null);
    for (Runnable chore = chores.poll(); chore != null; chore = chores.poll()) {
      chore.run();
    }
    for (final CompletableFuture<ByteBuffer> each : waiting) {
      assertThat(get(each).get()).isEqualTo(Wire.GRANTED);
    }
    assertThat(roads).hasSize(2);
    assertThat(sends.leases()).isZero();
  }
}
