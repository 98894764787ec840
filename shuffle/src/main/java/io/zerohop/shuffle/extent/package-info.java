/** Bytes of blocks in memory, run by run, and how the host reads them. */
package io.zerohop.shuffle.extent;
