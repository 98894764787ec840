package io.zerohop.spark.rows;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.fetch.FetchedBlock;

/** Thrown if the bytes of a block are not what its codec wrote. */
final class DamagedBlockException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  DamagedBlockException(final FetchedBlock block, final String found) {
    super(
        Category.FETCH_FAILED,
        "Block "
            + block.block()
            + ", read by path "
            + block.path().label()
            + ", is damaged: "
            + found
            + ". With spark.zerohop.checksum.enabled=true this is noticed before any row is used");
  }
}
