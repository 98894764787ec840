package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.helpers.FormattingTuple;
import org.slf4j.helpers.MessageFormatter;

class LogCodeTest {
  private final List<String> lines = new ArrayList<>();
  private Throwable trace;

  /** Formats as SLF4J's own loggers do. */
  private final Logger log =
      (Logger)
          Proxy.newProxyInstance(
              getClass().getClassLoader(),
              new Class<?>[] {Logger.class},
              (proxy, method, arguments) -> {
                final FormattingTuple line =
                    MessageFormatter.arrayFormat(
                        (String) arguments[0], (Object[]) arguments[arguments.length - 1]);
                lines.add(method.getName() + ": " + line.getMessage());
                trace = line.getThrowable();
                return null;
              });

  @Test
  void theCodeEndsTheLine() {
    DeviceCode.SERVER_FAILED.error(log, "server {} failed after {} s", "a", 3);
    assertThat(lines).containsExactly("error: server a failed after 3 s [ZH-3001]");
    assertThat(trace).isNull();
  }

  @Test
  void anExceptionKeepsItsStackTrace() {
    final Exception cause = new IllegalStateException("why");
    DeviceCode.CHORE_FAILED.warn(log, "a chore failed", cause);
    assertThat(lines).containsExactly("warn: a chore failed [ZH-1040]");
    assertThat(trace).isSameAs(cause);
  }

  @Test
  void aReasonKeepsItsCodeInsideALine() {
    DeviceCode.CHORE_FAILED.warn(log, "no: {}", DeviceCode.ACCEPT_FAILED.marked("it is full"));
    assertThat(lines).containsExactly("warn: no: it is full [ZH-3003] [ZH-1040]");
  }
}
