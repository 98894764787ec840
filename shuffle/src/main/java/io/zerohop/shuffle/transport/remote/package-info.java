/**
 * Blocks of executors whose memory cannot be read from here. The owner holds and gathers the
 * requested blocks and sends them, and the reader receives them in its own memory. By what the
 * bytes travel is a {@link io.zerohop.shuffle.transport.remote.carrier.Carrier}'s matter. Leases
 * and what is asked about them are also those of {@code transport.ucx}.
 */
package io.zerohop.shuffle.transport.remote;
