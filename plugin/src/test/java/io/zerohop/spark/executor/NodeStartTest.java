package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.sent.Uploads;
import io.zerohop.spark.watch.ExecutorWatch;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Whatever the start of an executor's memory fails by, the executor goes on without it. */
class NodeStartTest {
  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  /** What is advised of the start. */
  private final List<Message> said = new ArrayList<>();

  private final ExecutorWatch watch =
      new ExecutorWatch() {
        @Override
        public void advise(final String check, final Message warning) {
          if (check.equals("start")) {
            said.add(warning);
          }
        }
      };

  /** A configuration that fails when the start reads it. */
  private static final class FailingConf extends SparkConf {
    private static final long serialVersionUID = 1L;
    private final transient Throwable failure;

    FailingConf(final Throwable failure) {
      super(false);
      this.failure = failure;
    }

    @Override
    public String getAppId() {
      throw FailingConf.<RuntimeException>unchecked(failure);
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(final Throwable any) throws T {
      throw (T) any;
    }
  }

  private NodeStart start(final Throwable failure) {
    return new NodeStart(
        SparkEnv.get(),
        new FailingConf(failure),
        Config.defaults(),
        new byte[32],
        null,
        new Uploads(),
        watch);
  }

  static Stream<Throwable> survivable() {
    return Stream.of(
        new ZerohopException(Category.FALLBACK, "wanted by the test"),
        new ZerohopException(Category.FATAL, "wanted by the test"),
        new IllegalStateException("wanted by the test"),
        new NullPointerException("wanted by the test"),
        new IOException("wanted by the test"),
        new UnsatisfiedLinkError("wanted by the test"),
        new NoClassDefFoundError("wanted by the test"),
        new ExceptionInInitializerError("wanted by the test"),
        new AssertionError("wanted by the test"));
  }

  @ParameterizedTest
  @MethodSource("survivable")
  void theExecutorGoesOnWithoutMemoryAndSaysSoOnce(final Throwable failure) {
    assertThat(start(failure).start()).isNull();
    assertThat(said).hasSize(1);
    assertThat(said.get(0).reasoned())
        .contains("keeps shuffle blocks in files")
        .contains("wanted by the test");
    assertThat(said.get(0).code()).isEqualTo("ZH-1010");
  }

  static Stream<Error> fatal() {
    return Stream.of(
        new OutOfMemoryError("wanted by the test"),
        new StackOverflowError("wanted by the test"),
        new InternalError("wanted by the test"));
  }

  @ParameterizedTest
  @MethodSource("fatal")
  void whatEndsTheVirtualMachineIsPassedOn(final Error failure) {
    assertThatThrownBy(() -> start(failure).start()).isSameAs(failure);
    assertThat(said).isEmpty();
  }
}
