/** Readers' side: windows of blocks, in place under a lease or moved into receive buffers. */
package io.zerohop.shuffle.fetch;
