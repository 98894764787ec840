package io.zerohop.shuffle.transport.ucx.fabric;

import io.zerohop.device.ZerohopException;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The copies of one transfer out of an owner's memory. Immutable.
 *
 * @param from the mappings, given back when the copies have ended
 * @param wanted asked before each round of copies; if not it fails
 * @param progress run after each round
 * @param done run once, on a thread of the reader's, with the failure if there was one. After one
 *     that {@link #isStuck} the memory copied to may still be written
 */
public record FabricCopy(
    FabricImports.Hold from,
    List<Piece> pieces,
    BooleanSupplier wanted,
    Runnable progress,
    Consumer<@Nullable Throwable> done) {

  /**
   * A run of bytes.
   *
   * @param segment the owner's
   * @param offset in it
   * @param to address in this GPU's memory
   */
  public record Piece(long segment, long offset, long to, long bytes) {}

  /**
   * Returns whether copies may still be under way, so that no memory of theirs may be used again.
   */
  public static boolean isStuck(final @Nullable Throwable failure) {
    return failure instanceof ZerohopException known
        && known.category() == ZerohopException.Category.FATAL;
  }
}
