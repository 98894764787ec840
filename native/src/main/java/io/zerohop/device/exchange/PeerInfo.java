package io.zerohop.device.exchange;

/**
 * A peer that proved to know the secret.
 *
 * @param connectionId unique among the connections of one server, never used again
 * @param name what the peer calls itself
 * @param pid its process id as this process sees it; 0 when it is in another PID namespace
 * @param uid its user id, always that of this process
 */
public record PeerInfo(long connectionId, String name, int pid, int uid) {}
