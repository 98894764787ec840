/** How a map task's blocks come into memory. */
package io.zerohop.shuffle.write;
