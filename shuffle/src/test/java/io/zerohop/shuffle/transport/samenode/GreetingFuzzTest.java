package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
import io.zerohop.device.Topology;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.transport.samenode.PeerDirectory.Greeting;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What an owner says of itself, in map statuses and when it is met: taken, or null. */
class GreetingFuzzTest {
  private static final String TEXTS = "0123456789abcdef:-";

  private static String text(final Random random) {
    final StringBuilder text = new StringBuilder();
    for (int i = random.nextInt(20); i > 0; i--) {
      text.append(TEXTS.charAt(random.nextInt(TEXTS.length())));
    }
    return text.toString();
  }

  private static byte[] greeting(final Random random) {
    return new Greeting(
            random.nextInt(9),
            random.nextLong(),
            random.nextLong(),
            random.nextLong(),
            new Topology.View(text(random), text(random), text(random)))
        .encode();
  }

  private static byte[] location(final Random random) {
    return String.format(
            Locale.ROOT,
            "zh4:%08x:%016x:%016x:%d:%s:%s-%016x",
            random.nextInt(),
            random.nextLong(),
            random.nextLong(),
            random.nextInt(65_536),
            random.nextBoolean() ? "" : "0123456789abcdef0123456789abcdef/7",
            "app-" + random.nextInt(99),
            random.nextLong())
        .getBytes(StandardCharsets.UTF_8);
  }

  private static Location parse(final byte[] bytes) {
    return Location.parse(new String(bytes, StandardCharsets.UTF_8));
  }

  static Stream<Arguments> greetingSeeds() {
    return Fuzz.seeds(GreetingFuzzTest::greeting);
  }

  static Stream<Arguments> locationSeeds() {
    return Fuzz.seeds(GreetingFuzzTest::location);
  }

  @MethodSource("greetingSeeds")
  @FuzzTest
  void greetings(final byte[] bytes) {
    final Greeting greeting = Greeting.decode(bytes);
    if (greeting != null) {
      final Greeting again = Greeting.decode(greeting.encode());
      assertThat(again.laneBlock()).isEqualTo(greeting.laneBlock());
      assertThat(again.generation()).isEqualTo(greeting.generation());
      assertThat(again.rootSegment()).isEqualTo(greeting.rootSegment());
      assertThat(again.incarnation()).isEqualTo(greeting.incarnation());
    }
  }

  @MethodSource("locationSeeds")
  @FuzzTest
  void locations(final byte[] bytes) {
    final Location location = parse(bytes);
    if (location != null) {
      assertThat(Location.parse(location.encode())).isEqualTo(location);
    }
  }

  @Test
  void whatIsRightIsTakenAndWhatIsCutOffIsNot() {
    for (final byte[] bytes : Fuzz.good(GreetingFuzzTest::greeting)) {
      assertThat(Greeting.decode(bytes)).isNotNull();
      assertThat(Greeting.decode(Arrays.copyOf(bytes, bytes.length - 1))).isNull();
    }
    for (final byte[] bytes : Fuzz.good(GreetingFuzzTest::location)) {
      assertThat(parse(bytes)).isNotNull();
      assertThat(parse(Arrays.copyOf(bytes, bytes.length / 2))).isNull();
    }
  }
}
