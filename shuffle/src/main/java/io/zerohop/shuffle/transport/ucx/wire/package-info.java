/** What readers ask owners for that are read by UCX, beside what is asked everywhere. */
package io.zerohop.shuffle.transport.ucx.wire;
