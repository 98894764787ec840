package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.Fuzz;
import io.zerohop.device.Topology;
import io.zerohop.shuffle.block.Location;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What an owner says of itself, in map statuses and when it is met. */
class GreetingFuzzTest {
  private static final String TEXTS = "0123456789abcdef:-";

  private static String text(final Random random) {
    final StringBuilder text = new StringBuilder();
    for (int i = random.nextInt(20); i > 0; i--) {
      text.append(TEXTS.charAt(random.nextInt(TEXTS.length())));
    }
    return text.toString();
  }

  @Test
  void greetings() throws IOException {
    Fuzz.run(
        "greeting",
        random ->
            new Greeting(
                    random.nextInt(9),
                    random.nextLong(),
                    random.nextLong(),
                    random.nextLong(),
                    new Topology.View(text(random), text(random), text(random)))
                .encode(),
        bytes -> Greeting.decode(bytes) != null,
        List.of());
  }

  @Test
  void locations() throws IOException {
    Fuzz.run(
        "location",
        random ->
            String.format(
                    "zh3:%08x:%016x:%016x:%d:%s:%s-%016x",
                    random.nextInt(),
                    random.nextLong(),
                    random.nextLong(),
                    random.nextInt(65_536),
                    random.nextBoolean() ? "" : "0123456789abcdef0123456789abcdef/7",
                    "app-" + random.nextInt(99),
                    random.nextLong())
                .getBytes(StandardCharsets.UTF_8),
        bytes -> Location.parse(new String(bytes, StandardCharsets.UTF_8)) != null,
        List.of());
  }
}
