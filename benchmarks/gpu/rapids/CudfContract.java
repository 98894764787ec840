import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.Locale;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/**
 * Runs test classes with cudf itself that the build runs with a fake of it: CudfContract CLASS...
 * Ends with status 1 if one of their tests fails, or none is found; says on standard error which.
 */
public final class CudfContract {
  private static final long POOL_BYTES = 2L << 30;

  private CudfContract() {}

  public static void main(final String[] classes) {
    Cuda.setDevice(0);
    Rmm.initialize(RmmAllocationMode.CUDA_ASYNC, null, POOL_BYTES);
    final SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request()
                .selectors(Arrays.stream(classes).map(DiscoverySelectors::selectClass).toList())
                .build(),
            listener);
    final TestExecutionSummary summary = listener.getSummary();
    summary.printFailuresTo(new PrintWriter(System.err, true));
    System.out.printf(
        Locale.ROOT, "{\"tests\": %d, \"failed\": %d}%n",
        summary.getTestsFoundCount(), summary.getTestsFoundCount() - summary.getTestsSucceededCount());
    final boolean isGood = summary.getTestsFoundCount() > 0
        && summary.getTestsSucceededCount() == summary.getTestsFoundCount()
        && summary.getTotalFailureCount() == 0;
    System.exit(isGood ? 0 : 1); // cudf's threads would go on.
  }
}
