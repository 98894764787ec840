package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;

/** Channels of a test and the service behind them; all tests together leave nothing. */
@Timeout(60)
abstract class ControlChannelFixture {
  private static Leaks leaks;

  final AskedService service = new AskedService();
  final Channels channels = new Channels();

  @BeforeAll
  static void takeStock() {
    leaks = new Leaks();
  }

  @AfterAll
  static void nothingIsLeft() {
    leaks.check();
  }

  @AfterEach
  void closeChannels() {
    channels.close();
  }

  static ControlLink connect(final SparkControlChannel from, final SparkControlChannel to) {
    return from.connect(Channels.HOST, to.port(), Channels.LIMIT);
  }

  static String answer(final ControlLink link, final char kind, final String text)
      throws Exception {
    return AskedService.text(get(link.ask(AskedService.question(kind, text))));
  }

  static <T> T get(final CompletableFuture<T> answer) throws Exception {
    return answer.get(Channels.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
  }

  static Throwable failure(final CompletableFuture<?> answer) {
    return catchThrowableOfType(ExecutionException.class, () -> get(answer)).getCause();
  }

  static Reason reason(final Throwable failure) {
    assertThat(failure).isInstanceOf(ExchangeException.class);
    return ((ExchangeException) failure).reason();
  }

  static Reason reason(final Runnable connecting) {
    return catchThrowableOfType(ExchangeException.class, connecting::run).reason();
  }
}
