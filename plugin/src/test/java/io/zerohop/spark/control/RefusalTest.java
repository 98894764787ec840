package io.zerohop.spark.control;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RefusalTest {
  @ParameterizedTest
  @ValueSource(strings = {"plain: words", "für \uD83D\uDE00", "C:\\users\\\\u00fc", "\\$1"})
  void wordsPassThroughAsciiUnchanged(final String words) {
    final String text = new Refusal(Category.RETRY, words).toString();
    assertThat(US_ASCII.newEncoder().canEncode(text)).isTrue();
    final ZerohopException read = Refusal.read(new RuntimeException(text));
    assertThat(read.category()).isEqualTo(Category.RETRY);
    assertThat(read.message().what()).isEqualTo(words);
  }

  @Test
  void aRefusalIsReadAsOneLine() {
    final String text = new Refusal(Category.RETRY, "one\nWARN two").toString();
    assertThat(Refusal.read(new RuntimeException(text))).hasMessage("one WARN two");
  }

  @Test
  void whatIsNoEscapeStays() {
    final ZerohopException read =
        Refusal.read(new RuntimeException("zerohop refuses, RETRY:a \\u12 and \\"));
    assertThat(read).hasMessage("a \\u12 and \\");
  }
}
