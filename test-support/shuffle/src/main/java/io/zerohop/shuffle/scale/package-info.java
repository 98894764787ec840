/**
 * Many executors in one process, each a whole node of the product: how much each costs the others.
 * Control protocol, catalog, windows and choice of path are the product's; UCX and the connections
 * of control channels are played here, since the real ones take threads and ports for each.
 */
package io.zerohop.shuffle.scale;
