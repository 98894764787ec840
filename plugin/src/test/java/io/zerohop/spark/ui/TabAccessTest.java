package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The tab is behind the filters and the view ACLs of Spark's UI, as all other pages are. */
@Timeout(120)
class TabAccessTest {
  private static final String USER = "test-user";

  private static SparkContext spark;

  /** Says who asks, as a filter of the user's choice does, and lets nobody in without a name. */
  public static final class Names implements Filter {
    @Override
    public void doFilter(
        final ServletRequest request, final ServletResponse response, final FilterChain next)
        throws IOException, ServletException {
      final HttpServletRequest http = (HttpServletRequest) request;
      final String name = http.getHeader(USER);
      if (name == null) {
        ((HttpServletResponse) response).sendError(HttpServletResponse.SC_UNAUTHORIZED);
        return;
      }
      next.doFilter(
          new HttpServletRequestWrapper(http) {
            @Override
            public String getRemoteUser() {
              return name;
            }
          },
          response);
    }
  }

  @BeforeAll
  static void start() {
    spark =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("unit tests")
                .set("spark.ui.port", "0")
                .set("spark.ui.filters", Names.class.getName())
                .set("spark.acls.enable", "true")
                .set("spark.ui.view.acls", "alice"));
    LiveTab.start(spark, SparkEnv.get(), List::of);
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  private static int status(final String page, final String user) throws Exception {
    final HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(spark.ui().get().webUrl() + page))
            .timeout(Duration.ofSeconds(30));
    if (user != null) {
      request.header(USER, user);
    }
    return HttpClient.newHttpClient().send(request.build(), BodyHandlers.discarding()).statusCode();
  }

  @ParameterizedTest
  @ValueSource(strings = {"/zerohop/", "/zerohop/?path=ucx&q=1", "/zerohop/json/"})
  void whoMayNotViewIsRefused(final String page) throws Exception {
    assertThat(status(page, "alice")).as("who may").isEqualTo(200);
    assertThat(status(page, "mallory")).as("who may not").isEqualTo(403);
    assertThat(status(page, null)).as("whom the filter stops").isEqualTo(401);
  }

  @Test
  void sparksOwnPagesAreRefusedInTheSameWay() throws Exception {
    assertThat(status("/environment/", "alice")).isEqualTo(200);
    assertThat(status("/environment/", "mallory")).isEqualTo(403);
  }
}
