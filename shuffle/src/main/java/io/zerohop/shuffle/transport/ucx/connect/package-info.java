/**
 * Owners on other nodes: met when they are first needed, measured, and met again after a failure.
 */
package io.zerohop.shuffle.transport.ucx.connect;
