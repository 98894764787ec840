/** What readers and owners write to one another: questions, and where blocks lie. */
package io.zerohop.shuffle.transport.remote.wire;
