package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Test;

class ThreadsTest {
  /** As in a task, which may be of a session that ends long before the executor. */
  @Test
  void aThreadDoesNotKeepTheClassLoaderOfWhoMadeIt() throws Exception {
    final Thread maker = Thread.currentThread();
    final ClassLoader before = maker.getContextClassLoader();
    try (URLClassLoader sessions = new URLClassLoader(new URL[0], before)) {
      maker.setContextClassLoader(sessions);
      final Thread made = Threads.daemon(() -> {}, "test");
      assertThat(made.getContextClassLoader()).isSameAs(Threads.class.getClassLoader());
      assertThat(made.isDaemon()).isTrue();
    } finally {
      maker.setContextClassLoader(before);
    }
  }
}
