package io.zerohop.shuffle.catalog;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.pool.SegmentResolver;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** A reader's view of one owner's catalog. Thread safe; to be used under a lease. */
public final class CatalogView {
  private final RootView root;
  private final SegmentResolver segments;
  private final String owner;
  private final long incarnation;
  private final ConcurrentHashMap<Integer, ShuffleView> shuffles = new ConcurrentHashMap<>();

  /**
   * @param segments finds the owner's segments
   * @param owner names the owner in messages
   */
  public CatalogView(
      final RootView root,
      final SegmentResolver segments,
      final String owner,
      final long incarnation) {
    this.root = root;
    this.segments = segments;
    this.owner = owner;
    this.incarnation = incarnation;
  }

  /**
   * The shuffle as the owner lists it now. Must be asked once under each lease: a view that was
   * valid under an earlier one may have been freed since.
   *
   * @return absent if the owner lists no map output of it
   * @throws CatalogException if what was found is damaged
   */
  public @Nullable ShuffleView shuffle(final int shuffleId) {
    final ShuffleView known = shuffles.get(shuffleId);
    if (known != null && root.isCurrent(known.listing())) {
      return known;
    }
    final RootView.Listing listing = root.find(shuffleId);
    if (listing == null) {
      shuffles.remove(shuffleId);
      return null;
    }
    final ShuffleView view = new ShuffleView(listing, segments, owner, incarnation);
    shuffles.put(shuffleId, view);
    return view;
  }

  /** Drops what was remembered of a shuffle. */
  public void forget(final int shuffleId) {
    shuffles.remove(shuffleId);
  }

  /** Thrown if a catalog, an entry or its target is damaged or not as expected. */
  public static final class CatalogException extends ZerohopException {
    private static final long serialVersionUID = 1L;

    public CatalogException(final String message) {
      super(Category.FETCH_FAILED, message);
    }
  }
}
