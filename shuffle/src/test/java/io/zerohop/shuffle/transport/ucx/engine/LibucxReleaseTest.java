package io.zerohop.shuffle.transport.ucx.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.engine.LibucxRelease.Gets;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The table of releases is that of docs/rdma.md, section Which libucx. */
class LibucxReleaseTest {
  private static final Pattern LINE =
      Pattern.compile(
          "\\| 1\\.(\\d+)(?:(?:, | to )1\\.(\\d+)| release candidate)? \\|([^|]*)\\|(.*)");

  @Test
  void theTableIsThatOfThePage() throws IOException {
    final String page = Files.readString(Path.of("../docs/rdma.md"));
    final String section =
        page.substring(page.indexOf("### Which libucx"), page.indexOf("Zerohop asks libucx for"));
    final List<LibucxRelease> found = new ArrayList<>();
    Gets before = null;
    for (final String line : section.split("\n")) {
      final Matcher matcher = LINE.matcher(line);
      if (matcher.matches()) {
        final int first = Integer.parseInt(matcher.group(1));
        final int last = matcher.group(2) == null ? first : Integer.parseInt(matcher.group(2));
        before = gets(matcher.group(4).trim(), before);
        found.add(new LibucxRelease(first, last, matcher.group(3).trim(), before));
      }
    }
    assertThat(found).isEqualTo(LibucxRelease.TABLE);
  }

  private static Gets gets(final String text, final Gets before) {
    if (text.startsWith("the same")) {
      return before;
    }
    if (text.startsWith("none")) {
      return Gets.NONE;
    }
    return text.startsWith("emulated") ? Gets.EMULATED_UNLESS_SET : Gets.ONE_SIDED;
  }

  @Test
  void aVersionIsFoundByItsMinorRelease() {
    assertThat(LibucxRelease.of(0x010d01).orElseThrow().gets()).isEqualTo(Gets.ONE_SIDED);
    assertThat(LibucxRelease.of(0x011001).orElseThrow().gets()).isEqualTo(Gets.EMULATED_UNLESS_SET);
    assertThat(LibucxRelease.of(0x010c00)).isEmpty();
    assertThat(LibucxRelease.of(0x021000)).isEmpty();
  }
}
