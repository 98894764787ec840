package io.zerohop.shuffle.catalog;

import io.zerohop.device.ZerohopException;

/** Thrown if a catalog, an entry or its target is damaged or not as expected. */
public final class CatalogException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public CatalogException(final String message) {
    super(Category.FETCH_FAILED, message);
  }
}
