package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.Fetch;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The same with each message compressed. */
class SentCompressedPathTest extends SentPathTest {
  private static final int MAPS = 6;

  @Override
  protected Map<String, String> settings() {
    return Map.of("spark.zerohop.sent.codec", "zstd");
  }

  @Test
  void fewerBytesGoOverTheNetwork() {
    final BlockSource source = write(MAPS);
    long bytes = 0;
    try (Fetch fetcher = fetch(source)) {
      while (fetcher.next()) {
        bytes += TestNodes.read(fetcher.block()).length;
      }
    }
    assertThat(owner.stats().receiveBuffers().savedBytes()).isBetween(bytes / 4, bytes);
  }
}
