/**
 * Blocks of executors whose memory cannot be read from here, asked for and sent: the owner holds
 * what a reader asks for, gathers it and sends it, the reader receives it in memory of its own. By
 * what the bytes travel is a {@link io.zerohop.shuffle.transport.remote.carrier.Carrier}'s matter.
 * Leases and what is asked about them are also those of {@code transport.ucx}.
 */
package io.zerohop.shuffle.transport.remote;
