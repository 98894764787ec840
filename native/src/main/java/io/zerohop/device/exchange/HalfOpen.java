package io.zerohop.device.exchange;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The connections of a server that have not proved themselves, by the process that made them.
 * Processes of other PID namespaces cannot be told apart and count as one.
 */
record HalfOpen(int count, Map<Integer, List<ServerConnection>> byProcess) {

  /**
   * Picks them out.
   *
   * @param connections in the order in which they came
   */
  static HalfOpen of(final List<ServerConnection> connections) {
    final Map<Integer, List<ServerConnection>> byProcess = new HashMap<>();
    int count = 0;
    for (final ServerConnection connection : connections) {
      if (!connection.session().isOpen() && !connection.isClosed()) {
        byProcess
            .computeIfAbsent(connection.session().pid(), absent -> new ArrayList<>())
            .add(connection);
        count++;
      }
    }
    return new HalfOpen(count, byProcess);
  }

  /** The oldest one of the process that has most of them; null if there is none. */
  ServerConnection oldestOfMost() {
    List<ServerConnection> most = List.of();
    for (final List<ServerConnection> ofOne : byProcess.values()) {
      most = ofOne.size() > most.size() ? ofOne : most;
    }
    return most.isEmpty() ? null : most.get(0);
  }
}
