package io.zerohop.spark.rapids.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.rapids.format.KudoLayout.KudoBlock;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

class KudoBlockTest {
  /** The header of a block as spark-rapids-jni lays it out. */
  static ByteBuffer header(
      final int rows, final int validity, final int offsets, final int bytes, final int columns) {
    final ByteBuffer header = ByteBuffer.allocate(28 + (columns + 7) / 8);
    header.put(new byte[] {'K', 'U', 'D', '0'}).putInt(17).putInt(rows).putInt(validity);
    return header.putInt(offsets).putInt(bytes).putInt(columns).rewind();
  }

  @Test
  void aBlockIsAsLongAsItsHeaderSays() throws IOException {
    assertThat(KudoBlock.length(header(5, 4, 24, 100, 3))).isEqualTo(129);
    assertThat(KudoBlock.length(header(1, 0, 0, 0, 9))).isEqualTo(30);
  }

  @Test
  void itsFirstBytesTellItFromOtherBlocks() {
    assertThat(KudoBlock.begins(header(1, 0, 0, 8, 1).getInt())).isTrue();
    assertThat(KudoBlock.begins(0x5a4a5431)).isFalse(); // "ZJT1", of packed tables.
  }

  @Test
  void damageIsRefused() {
    final ByteBuffer[] damaged = {
      header(5, 4, 24, 100, 3).limit(27),
      header(5, 4, 24, 100, 3).put(0, (byte) 'X'),
      header(0, 4, 24, 100, 3),
      header(-1, 4, 24, 100, 3),
      header(5, -4, 24, 100, 3),
      header(5, 4, -24, 100, 3),
      header(5, 4, 24, -1, 3),
      header(5, 60, 60, 100, 3),
      header(5, 4, 24, 100, 0),
      header(5, 4, 24, 100, 3).putInt(24, 1 << 21),
    };
    for (final ByteBuffer one : damaged) {
      assertThatThrownBy(() -> KudoBlock.length(one))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("damaged");
    }
  }
}
