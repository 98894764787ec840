package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Signal;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.remote.ServedReader.SentReader;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Questions about blocks that an owner does not have. */
public class RemoteServiceTest {
  private static final long LINK = 3;

  /** More than are sent at a time. */
  private static final int MANY = 20;

  private static final int ROUNDS = 50_000;

  private final Devices devices = new Devices(null);
  private final Deque<Runnable> chores = new ArrayDeque<>();
  private final AtomicInteger answers = new AtomicInteger();

  @AfterEach
  void close() {
    devices.close();
  }

  private RemoteService<SentReader> service(final Executor slow) {
    final Slabs slabs = new Slabs(devices.host()::hostBuffer, 0, Clock.system());
    final RemoteService<SentReader> service =
        new Sends(
            Config.defaults(),
            SELF,
            NOTHING,
            Runnable::run,
            slow,
            Runnable::run,
            CARRIER,
            slabs,
            devices);
    service.asked(LINK, Questions.hello(new byte[1], false), answer -> {});
    return service;
  }

  /** Reaches each reader, and cannot send. */
  private static final Carrier CARRIER =
      stub(
          Carrier.class,
          method -> {
            if (method.equals("connect")) {
              return stub(Road.class, any -> true);
            }
            throw new CarrierException("a test wants it", null);
          });

  /** Answers each call by its name. */
  static <T> T stub(final Class<T> type, final Function<String, Object> answer) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> answer.apply(method.getName())));
  }

  public static final Self SELF = new Self("owner", 1, ContactListener.NONE, Clock.system());

  /** An owner without map outputs. */
  public static final BlockHolder NOTHING =
      new BlockHolder() {
        @Override
        public OwnOutput retain(final int shuffleId, final long mapId) {
          return null;
        }

        @Override
        public Signal ready(final OwnOutput retained) {
          throw new AssertionError("it has none");
        }
      };

  private static long open(final RemoteService<SentReader> service) {
    final long[] lease = new long[1];
    service.asked(
        LINK,
        ByteBuffer.allocate(9).put(Wire.OPEN).putInt(1).putInt(0).flip(),
        answer -> {
          assertThat(answer.get()).isEqualTo(Wire.GRANTED);
          lease[0] = answer.getLong();
        });
    return lease[0];
  }

  private static void send(
      final RemoteService<SentReader> service,
      final long lease,
      final Consumer<ByteBuffer> answer) {
    final ByteBuffer question = ByteBuffer.allocate(17).put(Wire.SEND).putLong(lease).putLong(1);
    service.asked(LINK, question.flip(), answer);
  }

  private static void drop(final RemoteService<SentReader> service, final long lease) {
    service.asked(LINK, ByteBuffer.allocate(9).put(Wire.CLOSE).putLong(lease).flip(), answer -> {});
  }

  private void refused(final ByteBuffer answer) {
    assertThat(answer.get()).isEqualTo(Wire.REFUSED);
    answers.incrementAndGet();
  }

  private void runChores() {
    for (Runnable chore = chores.poll(); chore != null; chore = chores.poll()) {
      chore.run();
    }
  }

  @Test
  void whatIsClosedBeforeItsTurnIsRefused() {
    final RemoteService<SentReader> service = service(chores::add);
    for (int i = 0; i < MANY; i++) {
      final long lease = open(service);
      send(service, lease, this::refused);
      drop(service, lease);
    }
    runChores();
    assertThat(answers).hasValue(MANY);
    assertThat(service.leases()).isZero();
  }

  /** The reader is gone, say. Its place goes to the next one, and the thread lives on. */
  @Test
  void anAnswerThatIsNotTakenHoldsNothingUp() {
    final RemoteService<SentReader> service = service(chores::add);
    for (int i = 0; i < MANY; i++) {
      send(
          service,
          open(service),
          answer -> {
            answers.incrementAndGet();
            throw new IllegalStateException("a test wants it");
          });
    }
    runChores();
    assertThat(answers).hasValue(MANY);
    send(service, open(service), this::refused);
    runChores();
    assertThat(answers).hasValue(MANY + 1);
  }

  /** SENDs and the CLOSEs of their leases, at once. */
  @Test
  void whatIsClosedInItsTurnIsAnswered() {
    final RemoteService<SentReader> service = service(Runnable::run);
    final AtomicLong opened = new AtomicLong();
    final AtomicBoolean over = new AtomicBoolean();
    final CompletableFuture<Void> closing =
        CompletableFuture.runAsync(
            () -> {
              for (long lease = 1; lease <= ROUNDS; lease++) {
                while (opened.get() < lease && !over.get()) {
                  Thread.onSpinWait();
                }
                drop(service, lease);
              }
            });
    try {
      for (int i = 1; i <= ROUNDS; i++) {
        final long lease = open(service);
        opened.set(lease);
        send(service, lease, this::refused);
        if (answers.get() != i) {
          throw new AssertionError("no answer to request " + i);
        }
      }
    } finally {
      over.set(true);
      closing.join();
    }
    assertThat(service.leases()).isZero();
  }
}
