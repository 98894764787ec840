package io.zerohop.spark.outputfiles;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;

/** What disks do now and then. */
final class Damage {
  private Damage() {}

  /** Flips a bit of one byte. */
  static void flip(final File file, final long position) throws IOException {
    try (RandomAccessFile bytes = new RandomAccessFile(file, "rw")) {
      bytes.seek(position);
      final int before = bytes.read();
      bytes.seek(position);
      bytes.write(before ^ 8);
    }
  }
}
