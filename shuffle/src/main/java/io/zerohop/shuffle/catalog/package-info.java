/** Which block lies where, in memory that peers search themselves; docs/catalog.md. */
package io.zerohop.shuffle.catalog;
