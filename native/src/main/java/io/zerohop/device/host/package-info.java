/**
 * The device contract on shared host memory: segments are sealed memfds, signals are words that
 * waiters sleep on with a futex, copies are made by the processor.
 */
package io.zerohop.device.host;
