package io.zerohop.spark.ui;

import io.zerohop.spark.report.ShuffleReport.ReportJson;
import java.util.Objects;
import org.apache.spark.util.kvstore.KVIndex;
import org.apache.spark.util.kvstore.KVStore;
import org.jspecify.annotations.Nullable;

/**
 * A snapshot in the history server's store, in memory or on disk. The server replays a log once,
 * and renders the page from the store afterwards.
 */
public final class StoredSnapshot {
  private static final String ONLY = "zerohop";

  /** The store's key of it. */
  @KVIndex public @Nullable String id;

  public @Nullable String json;

  /** For the store, which sets the fields. */
  public StoredSnapshot() {}

  static StoredSnapshot of(final UiSnapshot snapshot) {
    final StoredSnapshot stored = new StoredSnapshot();
    stored.id = ONLY;
    stored.json = ReportJson.write(snapshot);
    return stored;
  }

  static boolean isIn(final KVStore store) throws Exception {
    return store.count(StoredSnapshot.class) > 0;
  }

  /**
   * The snapshot in a store.
   *
   * @throws IllegalStateException if it cannot be read
   */
  static UiSnapshot read(final KVStore store) {
    try {
      final String json = store.read(StoredSnapshot.class, ONLY).json;
      return ReportJson.read(Objects.requireNonNull(json, "a snapshot"), UiSnapshot.class);
    } catch (final Exception e) {
      throw new IllegalStateException("the tab's numbers cannot be read from the store", e);
    }
  }
}
