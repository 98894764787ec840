/**
 * Map outputs that nobody uses make room: from GPU memory to host memory, from there to files,
 * which the plugin writes and serves.
 */
package io.zerohop.shuffle.spill;
