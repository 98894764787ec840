package io.zerohop.spark.rapids.api;

import com.nvidia.spark.rapids.ShimLoader;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.jspecify.annotations.Nullable;
import scala.Option;

/**
 * RAPIDS' list of memory that can leave the GPU. RAPIDS walks it on the thread whose allocation
 * failed, lowest priority first, until there is enough. Ours are among them by proxies, since the
 * interface lies where only RAPIDS' own class loader sees it. Bound apart from {@link
 * RapidsClasses}: without it shuffles work as well. Thread safe.
 */
public final class SpillStore {
  private final Class<?> handleType;
  private final MethodHandle track;
  private final MethodHandle remove;

  private SpillStore(
      final Class<?> handleType, final MethodHandle track, final MethodHandle remove) {
    this.handleType = handleType;
    this.track = track;
    this.remove = remove;
  }

  /** An entry that can leave GPU memory; called on RAPIDS' threads. */
  public interface Place {
    /** Bytes that it would give back now; 0 if it is not to be asked for any. */
    long bytes();

    /** Gives them back; returns how many it has. */
    long giveBack();
  }

  /**
   * The list of this executor; RAPIDS has started.
   *
   * @throws Throwable if RAPIDS is another than is known, whatever is amiss
   */
  public static SpillStore find() throws Throwable {
    final ClassLoader loader = ShimLoader.getShimClassLoader();
    final Object all = RapidsMember.SPILL_STORES.bind(loader).invoke();
    final Object store = RapidsMember.DEVICE_STORE.bind(loader).invoke(all);
    return new SpillStore(
        RapidsMember.DEVICE_HANDLE.owner(loader),
        RapidsMember.TRACK.bind(loader).bindTo(store),
        RapidsMember.REMOVE.bind(loader).bindTo(store));
  }

  /**
   * Adds a place.
   *
   * @param priority when its turn is; places of tasks have those of the tasks, others the highest
   * @return for {@link #remove}
   */
  public Object add(final long priority, final Place place) throws Throwable {
    final Object handle = handle(handleType, priority, place);
    track.invoke(handle);
    return handle;
  }

  public void remove(final Object handle) throws Throwable {
    remove.invoke(handle);
  }

  /** An instance of RAPIDS' interface for a place. */
  static Object handle(final Class<?> type, final long priority, final Place place) {
    return Proxy.newProxyInstance(
        type.getClassLoader(), new Class<?>[] {type}, new Handle(priority, place));
  }

  /** Answers what the store asks; it never leaves the list when it has given something back. */
  private record Handle(long priority, Place place) implements InvocationHandler {
    @Override
    public @Nullable Object invoke(
        final Object self, final Method method, final Object[] arguments) {
      return switch (method.getName()) {
        case "approxSizeInBytes" -> place.bytes();
        case "spillable" -> place.bytes() > 0;
        case "spill" -> place.giveBack();
        case "taskPriority" -> priority;
        case "dev", "taskId" -> Option.empty();
        case "hashCode" -> System.identityHashCode(self);
        case "equals" -> self == arguments[0];
        case "toString" -> "Zerohop's pool in GPU memory";
        default -> nothing(method.getReturnType());
      };
    }

    private static @Nullable Object nothing(final Class<?> type) {
      if (type == boolean.class) {
        return false;
      }
      return type == long.class ? (Object) 0L : type == int.class ? (Object) 0 : null;
    }
  }
}
