/** Readers' side: windows of blocks, in place under a lease or staged into landing memory. */
package io.zerohop.shuffle.fetch;
