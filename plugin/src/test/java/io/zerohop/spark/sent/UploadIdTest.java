package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockId$;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.junit.jupiter.api.Test;

class UploadIdTest {
  private final Random random = new Random(7);

  /** As it travels: by its name, in which Spark takes no negative number. */
  private static UploadId moved(final UploadId id) {
    final BlockId there = BlockId$.MODULE$.apply(id.encode().name());
    assertThat(there.isShuffle()).isTrue();
    return UploadId.decode((ShuffleBlockBatchId) there);
  }

  @Test
  void messagesKeepAllTheirBits() {
    for (int i = 0; i < 1000; i++) {
      final UploadId id =
          UploadId.message(
              random.nextLong(),
              random.nextInt() & Integer.MAX_VALUE,
              1 + random.nextInt(1 << 27),
              random.nextInt());
      assertThat(moved(id)).isEqualTo(id);
    }
  }

  @Test
  void compressedMessagesKeepAllTheirBits() {
    for (int i = 0; i < 1000; i++) {
      final MessageCodec codec = i % 2 == 0 ? MessageCodec.LZ4 : MessageCodec.ZSTD;
      final UploadId id =
          UploadId.compressed(
              random.nextLong(),
              random.nextInt() & Integer.MAX_VALUE,
              codec,
              1 + random.nextInt(1 << 26),
              random.nextInt() & Integer.MAX_VALUE);
      assertThat(moved(id)).isEqualTo(id);
      assertThat(MessageCodec.of(id.type())).isEqualTo(codec);
    }
  }

  @Test
  void wordsKeepAllTheirBits() {
    for (int type = 0; type < 8; type++) {
      final UploadId id =
          UploadId.word(
              type,
              random.nextLong() & Long.MAX_VALUE,
              random.nextInt() & Integer.MAX_VALUE,
              random.nextInt() & Integer.MAX_VALUE);
      assertThat(moved(id)).isEqualTo(id);
    }
  }
}
