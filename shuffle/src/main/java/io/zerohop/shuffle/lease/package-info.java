/**
 * Leases: which readers may still be reading an owner's memory, and which are gone; docs/leases.md.
 */
package io.zerohop.shuffle.lease;
