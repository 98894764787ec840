/** Owners that are read: met when they are first needed, and met again after a failure. */
package io.zerohop.shuffle.transport.remote.connect;
