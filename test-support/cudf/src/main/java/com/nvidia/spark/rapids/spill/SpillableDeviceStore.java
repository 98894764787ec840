package com.nvidia.spark.rapids.spill;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** As RAPIDS': asked by who finds no GPU memory, low priorities first. Thread safe. */
public final class SpillableDeviceStore {
  private final List<DeviceSpillableHandle> handles = new ArrayList<>();

  public synchronized void track(final StoreHandle handle) {
    handles.add((DeviceSpillableHandle) handle);
  }

  public synchronized void remove(final StoreHandle handle) {
    handles.remove(handle);
  }

  /** How many there are. */
  public synchronized int size() {
    return handles.size();
  }

  private synchronized List<DeviceSpillableHandle> inOrder() {
    return handles.stream()
        .sorted(Comparator.comparingLong(DeviceSpillableHandle::taskPriority))
        .toList();
  }

  /** Has the first one that can give some memory back; returns how much that was. */
  public long spill() {
    for (final DeviceSpillableHandle handle : inOrder()) {
      final long given = handle.spillable() && handle.approxSizeInBytes() > 0 ? handle.spill() : 0;
      if (given > 0) {
        return given;
      }
    }
    return 0;
  }
}
