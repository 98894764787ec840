package io.zerohop.shuffle.catalog;

import io.zerohop.device.ZerohopException;

/** A catalog, an entry or what it points to is damaged or not what it should be. */
public final class CatalogException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public CatalogException(final String message) {
    super(Category.FETCH_FAILED, message);
  }

  public CatalogException(final String message, final Throwable cause) {
    super(Category.FETCH_FAILED, message, cause);
  }
}
