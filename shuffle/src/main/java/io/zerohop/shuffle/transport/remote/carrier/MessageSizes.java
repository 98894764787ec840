package io.zerohop.shuffle.transport.remote.carrier;

/**
 * The message sizes of a carrier.
 *
 * @param packed bytes up to which small pieces are copied together
 * @param longest most bytes of one message
 * @param atOnce messages of one transfer that are under way at a time
 */
public record MessageSizes(int packed, int longest, int atOnce) {}
