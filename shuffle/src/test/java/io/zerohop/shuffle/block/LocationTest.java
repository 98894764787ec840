package io.zerohop.shuffle.block;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class LocationTest {
  private static final String LONGEST = "a".repeat(42);

  @Test
  void whatIsEncodedIsParsed() {
    final String node = Location.currentBootId("");
    for (final String clique : List.of("", "0123456789abcdef0123456789abcdef/4294967295")) {
      for (final long incarnation : new long[] {0, 1, -1, Long.MIN_VALUE, 0x123456789abcdefL}) {
        final Location location =
            new Location(
                node, "0123456789abcdef", incarnation, 65535, true, clique, LONGEST, 65535);
        assertThat(location.encode())
            .hasSizeLessThanOrEqualTo(Location.MAX_ENCODED_BYTES)
            .isASCII();
        assertThat(Location.parse(location.encode())).isEqualTo(location);
      }
    }
  }

  @Test
  void theKeepersPortIsPartOfIt() {
    final Location location = new Location("01234567", "0123456789abcdef", 5, 7077, "1-00000005");
    final Location kept = location.withKeeper(4711);
    assertThat(kept.encode()).isEqualTo(location.encode() + ":4711");
    assertThat(Location.parse(kept.encode())).isEqualTo(kept);
    assertThat(Location.parse(location.encode() + ":65536")).isNull();
    assertThat(Location.parse(location.encode() + ":0")).isNull();
    assertThat(kept.withKeeper(0)).isEqualTo(location);
    assertThat(Location.keeperPortOf(Location.keeperName(4711, false))).isEqualTo(4711);
    assertThat(Location.keeperPortOf(Location.keeperName(0, false))).isZero();
    assertThat(Location.keeperPortOf("keeper.65536")).isNegative();
    assertThat(Location.keeperPortOf("keeper.")).isNegative();
    assertThat(Location.keeperPortOf("driver")).isNegative();
  }

  /** Some locales have digits of their own, and these are no hexadecimal digits and no port. */
  @Test
  void theTextIsTheSameInEveryLocale() {
    final Location location =
        new Location(
            "01234567", "0123456789abcdef", 5, 7077, false, "", Location.socketName("12", 7));
    final Locale before = Locale.getDefault();
    try {
      Locale.setDefault(Locale.ROOT);
      final String text = location.encode();
      final String socket = Location.socketName("12", 7);
      Stream.concat(
              Stream.of(Locale.getAvailableLocales()),
              Stream.of("th-TH-u-nu-thai", "ar-EG", "tr-TR").map(Locale::forLanguageTag))
          .forEach(
              locale -> {
                Locale.setDefault(locale);
                assertThat(location.encode()).as(locale.toLanguageTag()).isEqualTo(text);
                assertThat(Location.socketName("12", 7)).isEqualTo(socket);
              });
      assertThat(Location.parse(text)).isEqualTo(location);
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void othersTextsAreNotLocations() {
    assertThat(Location.parse(null)).isNull();
    final String good =
        new Location("01234567", "0123456789abcdef", 5, 7077, "1-00000005").encode();
    final Random random = new Random(11);
    assertThat(Location.parse("")).isNull();
    assertThat(Location.parse("rapids=8080")).isNull();
    assertThat(Location.parse("/default-rack")).isNull();
    assertThat(Location.parse(good + "x".repeat(140))).isNull();
    assertThat(Location.parse(good.replace("zh4", "zh3"))).isNull();
    assertThat(Location.parse(good.replace("7077", "65535"))).isNotNull();
    assertThat(Location.parse(good.replace("7077", "65536"))).as("no port").isNull();
    for (int i = 0; i < 10_000; i++) {
      final StringBuilder text = new StringBuilder(good);
      text.setCharAt(random.nextInt(text.length()), (char) random.nextInt(256));
      final Location parsed = Location.parse(text.toString());
      if (parsed != null) {
        assertThat(parsed.encode()).isEqualTo(text.toString());
      }
    }
  }

  @Test
  void partsThatCannotTravelAreRefused() {
    assertThatThrownBy(() -> new Location("01234567", "0123456789abcdef", 1, 0, "a/b"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Location("01234567", "0123456789abcdef", 1, 0, LONGEST + "a"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(
            () -> new Location("01234567", "0123456789abcdef", 1, 0, false, "0123/1", "1"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Location("01234567", "0123456789abcdef", 1, 65_536, "1"))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
