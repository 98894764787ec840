package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException.Category;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;

class MessageTest {
  private static final Message FULL =
      DeviceCode.ACCEPT_FAILED
          .says("cannot accept")
          .at("executor 7")
          .because("no; files")
          .remedy("raise 'ulimit -n'");

  @Test
  void theTextHasWhatWhereWhyRemedyAndCodeInThisOrder() {
    assertThat(FULL.text())
        .isEqualTo("cannot accept (executor 7): no; files; raise 'ulimit -n' [ZH-3003]")
        .isEqualTo(FULL.toString());
    assertThat(FULL.happened()).isEqualTo("cannot accept (executor 7): no; files");
    assertThat(FULL.reasoned()).isEqualTo("cannot accept: no; files");
    assertThat(Message.of("cannot accept").text()).isEqualTo("cannot accept");
    assertThat(FULL.at("").remedy("").text()).isEqualTo("cannot accept: no; files [ZH-3003]");
  }

  @Test
  void aMessageThatLacksCodeAndRemedyTakesThoseOfItsReason() {
    final Message outer = Message.of("the start failed").because(FULL);
    assertThat(outer.code()).isEqualTo("ZH-3003");
    assertThat(outer.remedy()).isEqualTo("raise 'ulimit -n'");
    assertThat(outer.why()).isEqualTo("cannot accept (executor 7): no; files");
  }

  @Test
  void aMessageKeepsItsOwnAndQuotesThoseOfItsReason() {
    final Message outer =
        DeviceCode.CHORE_FAILED.says("it failed").remedy("try again").because(FULL);
    assertThat(outer.text())
        .isEqualTo(
            "it failed: cannot accept (executor 7): no; files; raise 'ulimit -n' [ZH-3003];"
                + " try again [ZH-1040]");
    assertThat(Message.of("it failed").orRemedy("else").remedy()).isEqualTo("else");
    assertThat(FULL.orRemedy("else")).isEqualTo(FULL);
  }

  @Test
  void aFailureHasItsMessageAsFields() throws Exception {
    final ZerohopException failure = new ZerohopException(Category.RETRY, FULL);
    assertThat(failure).hasMessage(FULL.text());
    assertThat(Message.of(failure)).isEqualTo(FULL);
    assertThat(Message.of(new IOException("no; disk")))
        .isEqualTo(Message.of("java.io.IOException: no; disk"));
    assertThat(copy(failure).message()).isEqualTo(FULL); // As Spark sends it to the driver.
    assertThat(new ZerohopException(Category.RETRY, "what; it is").message())
        .isEqualTo(Message.of("what; it is"));
  }

  private static ZerohopException copy(final ZerohopException failure) throws Exception {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(failure);
    return (ZerohopException)
        new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
  }

  @Test
  void whatOthersSaidMakesNoLineOfItsOwn() {
    final String text = FULL.because("x\nWARN forged\r\u001b[31m\u0085y").text();
    assertThat(text.chars()).noneMatch(Character::isISOControl);
    assertThat(text).contains("x WARN forged");
  }

  @Test
  void aLogLineIsTheTextAndPlacesInItAreNotFilled() {
    final List<String> lines = new ArrayList<>();
    final Logger log =
        (Logger)
            Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {Logger.class},
                (proxy, method, arguments) ->
                    lines.add(method.getName() + ": " + arguments[0] + ", " + arguments[1])
                        ? null
                        : null);
    FULL.at("{}").warn(log);
    FULL.error(log, new IOException("why"));
    assertThat(lines)
        .containsExactly(
            "warn: cannot accept ({}): no; files; raise 'ulimit -n' [ZH-3003], null",
            "error: " + FULL.text() + ", java.io.IOException: why");
    assertThatThrownBy(() -> Message.of("uncoded").warn(log)).isInstanceOf(AssertionError.class);
  }
}
