/** Map outputs that nobody uses make room: from GPU memory to host memory, from there to files. */
package io.zerohop.shuffle.spill;
