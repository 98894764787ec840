package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Device;
import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Location;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An executor that ends while the keeper's process cannot map or serve anything for a while. */
class KeptExecutorTest {
  @TempDir private Path temp;
  private final Leaks leaks = new Leaks();
  private final HostDevice host = new HostDevice();
  private final TestClock clock = TestClock.standing();
  private final AtomicInteger failures = new AtomicInteger();
  private SocketFolder sockets;
  private ShuffleNode owner;
  private KeptExecutor kept;

  @BeforeEach
  void start() {
    final Path base = temp.resolve("s");
    sockets = ShuffleNode.socketFolder(base, "app-test", TestNodes.SECRET);
    owner = ShuffleNode.start(TestNodes.config(base, "1").set("keeper", true));
    TestBlocks.put(owner, 1, 0, 2, 60, 500);
    TestBlocks.put(owner, 2, 7, 2, 60, 500);
    final Device failing =
        (Device)
            Proxy.newProxyInstance(
                Device.class.getClassLoader(),
                new Class<?>[] {Device.class},
                (proxy, method, arguments) -> call(method, arguments));
    kept =
        KeptExecutor.connect(
            sockets, owner.location().socket(), TestNodes.SECRET, failing, Location.KEEPER, clock);
    TestNodes.eventually(
        "all is held", () -> kept.round(Long.MAX_VALUE) == 0 && kept.heldBytes() > 0);
  }

  private Object call(final Method method, final Object[] arguments) throws Throwable {
    if (method.getName().equals("map") && failures.getAndUpdate(n -> Math.max(0, n - 1)) > 0) {
      ((SegmentHandle) arguments[0]).close();
      throw new ZerohopException(ZerohopException.Category.FALLBACK, "no mapping is left");
    }
    try {
      return method.invoke(host, arguments);
    } catch (final InvocationTargetException e) {
      throw e.getCause();
    }
  }

  @AfterEach
  void noLeaks() {
    kept.close();
    owner.close();
    sockets.close();
    host.close();
    leaks.check();
  }

  @Test
  void whatCannotBeLookedAtIsLookedAtAgain() {
    failures.set(3);
    owner.close();
    TestNodes.eventually(
        "it has taken over",
        () -> {
          kept.round(0);
          return kept.left() != null || kept.isClosed();
        });
    assertThat(failures).hasValue(0);
    assertThat(kept.leftOutputs()).isEqualTo(Map.of(1, Set.of(0L), 2, Set.of(7L)));
    kept.drop(1);
    assertThat(kept.leftOutputs()).isEqualTo(Map.of(2, Set.of(7L)));
    kept.drop(2);
    assertThat(kept.isClosed()).isTrue();
  }

  /** As where no descriptor is left. */
  @Test
  void whatCannotBeServedIsServedLater() throws Exception {
    final Path inTheWay = leftSocket();
    Files.createDirectory(inTheWay);
    owner.close();
    awaitEnd();
    for (int i = 0; i < 3; i++) {
      kept.round(0);
      assertThat(kept.isClosed()).isFalse();
      assertThat(kept.left()).isNull();
      assertThat(kept.heldBytes()).isPositive();
    }
    Files.delete(inTheWay);
    TestNodes.eventually(
        "it has taken over",
        () -> {
          kept.round(0);
          return kept.left() != null || kept.isClosed();
        });
    assertThat(kept.leftOutputs()).isEqualTo(Map.of(1, Set.of(0L), 2, Set.of(7L)));
    assertThat(sockets.isServed(inTheWay.getFileName().toString())).isTrue();
  }

  private void awaitEnd() {
    TestNodes.eventually(
        "its connection has ended",
        () -> {
          kept.round(0);
          return !kept.isLiving();
        });
    assertThat(kept.isClosed()).isFalse();
  }

  private Path leftSocket() {
    return sockets.socket(Location.leftSocket(owner.location().socket()));
  }

  @Test
  void whatCannotBeServedForLongIsGivenUp() throws Exception {
    final Path inTheWay = leftSocket();
    Files.createDirectory(inTheWay);
    owner.close();
    awaitEnd();
    clock.advance(Duration.ofMinutes(1));
    assertThatThrownBy(() -> kept.round(0)).isInstanceOf(ZerohopException.class);
    kept.close();
    assertThat(kept.heldBytes()).isZero();
    Files.delete(inTheWay);
  }

  /** A reader asks for as many as it likes. */
  @Test
  void blocksThatThereCannotBeDoNotFillTheLog() {
    owner.close();
    TestNodes.eventually(
        "it has taken over",
        () -> {
          kept.round(0);
          return kept.left() != null;
        });
    final LeftBlocks left = kept.left();
    final String log =
        loggedWhile(
            () -> {
              for (int partition = 60; partition < 160; partition++) {
                assertThat(left.bytes(1, 0, partition)).isNegative();
                assertThat(left.bytes(2, 7, -partition)).isNegative();
              }
            });
    assertThat(log).contains("map output 0 of shuffle 1", "map output 7 of shuffle 2");
    assertThat(log.lines()).hasSize(2);
  }

  private static String loggedWhile(final Runnable action) {
    final PrintStream before = System.err;
    final ByteArrayOutputStream log = new ByteArrayOutputStream();
    System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
    try {
      action.run();
    } finally {
      System.setErr(before);
    }
    return log.toString(StandardCharsets.UTF_8);
  }

  @Test
  void whatCannotBeLookedAtForLongIsGivenUp() {
    failures.set(Integer.MAX_VALUE);
    owner.close();
    final int before = failures.get();
    TestNodes.eventually(
        "it tries to take over",
        () -> {
          kept.round(0);
          return failures.get() < before || kept.isClosed();
        });
    assertThat(kept.isClosed()).isFalse();
    clock.advance(Duration.ofMinutes(1));
    assertThatThrownBy(() -> kept.round(0)).isInstanceOf(ZerohopException.class);
  }
}
