import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Holds the pages to plain English, by {@code Prose.java check} in the root: prose.txt has a budget
 * for each page that is not plain yet, and {@code check} fails if a page is over or far under it.
 * {@code lower} lowers the budgets, {@code list} prints findings; code and generated parts are out.
 */
public final class Prose {
  private static final Path BUDGETS = Path.of("integration-tests/checks/prose.txt");
  private static final Pattern NOT_PROSE =
      Pattern.compile("(?ms)^ *```.*?^ *```|<!-- ([\\w-]+):begin.*?<!-- \\1:end -->|<!--.*?-->");
  private static final Pattern WORDS =
      Pattern.compile(
          "(?i)\\b(to be had|st(ands?|ood|anding) still|(un)?mend(s|ed|ing)?|strangers?|whoever"
              + "|(is|was|were|are|be|been) (not )?seen|se(es?|en) to|what is left of|of which"
              + "|(?<!one )at a time|(least|most) (are|is)|(it|what (it|he|they)) wants?|in vain"
              + "|are asked for|behind everything|is believed|lets? go of|in turns)\\b");
  private static final Pattern HEADING =
      Pattern.compile("(?i)^#+ (who|whether|what (is|was) (said|seen|left|known|not)|(\\S+ ){12})");
  private static final String SENTENCE = "(?<=[.!?][*\")]{0,3}) +(?=[*\"(\\[]*[A-Z0-9])";

  private static final List<String> NAMES =
      List.of("sentences over 35 words", "mean length", "phrases", "headings");
  private static boolean listed;

  public static void main(String[] arguments) throws Exception {
    listed = arguments[0].equals("list");
    var budgets = new TreeMap<String, double[]>();
    for (String line : Files.readAllLines(BUDGETS)) {
      String[] fields = line.split(" ");
      if (!line.startsWith("#")) {
        budgets.put(fields[0], Stream.of(fields).skip(1).mapToDouble(Double::valueOf).toArray());
      }
    }
    StringBuilder problems = new StringBuilder();
    String lowered = "# page: " + String.join(", ", NAMES) + "; lower it by Prose.java lower\n";
    Stream<Path> files = Stream.concat(Files.list(Path.of("")), Files.walk(Path.of("docs")));
    for (Path page : files.filter(f -> f.toString().endsWith(".md")).sorted().toList()) {
      double[] standard = new double[NAMES.size()], now = read(page, standard);
      double[] budget = budgets.remove(page.toString()), max = budget == null ? standard : budget;
      StringBuilder line = new StringBuilder(page.toString());
      boolean plain = true;
      for (int i = 0; i < NAMES.size(); i++) {
        boolean falls = max[i] > standard[i] && now[i] < max[i] - Math.max(2, max[i] / 5);
        if (now[i] > Math.max(max[i], standard[i]) || falls) {
          problems.append(page + ": " + NAMES.get(i) + ": " + now[i] + ", budget " + max[i]);
          problems.append("; run Prose.java " + (falls ? "lower\n" : "list\n"));
        }
        plain &= now[i] <= standard[i];
        line.append(" " + Math.min(now[i], max[i]));
      }
      lowered += budget == null || plain ? "" : line + "\n";
    }
    budgets.keySet().forEach(gone -> problems.append(gone + ": no such page\n"));
    if (arguments[0].equals("lower")) {
      Files.writeString(BUDGETS, lowered);
    } else if (arguments[0].equals("check") && !problems.isEmpty()) {
      System.err.print(problems);
      System.exit(1);
    }
  }

  /** Returns the page's numbers, and writes those that a page of its length may have. */
  private static double[] read(Path file, double[] standard) throws Exception {
    String text = NOT_PROSE.matcher(Files.readString(file)).replaceAll("\n\n");
    text = text.replaceAll("\\]\\([^)]*\\)", "]").replaceAll("`[^`]+`", "X");
    double[] now = new double[NAMES.size()];
    double sentences = 0;
    for (String line : text.replaceAll("\n(?=\\S)(?![-*|#>]|\\d+\\.)", " ").split("\n")) {
      now[2] += found(WORDS, line, "phrase");
      now[3] += found(HEADING, line, "heading");
      boolean cells = line.startsWith("|");
      for (String sentence : line.split(cells ? "\\|" : SENTENCE)) {
        int words = sentence.replaceAll("(?<!\\S)\\W+(?!\\S)", " ").trim().split("\\s+").length;
        if (!line.startsWith("#") && !sentence.isBlank()) {
          now[0] += words > 35 ? found(Pattern.compile("^"), sentence, words + " words") : 0;
          now[1] += cells ? 0 : words;
          sentences += cells ? 0 : 1;
        }
      }
    }
    now[1] = Math.ceil(10 * now[1] / Math.max(1, sentences)) / 10;
    standard[0] = sentences / 20;
    standard[1] = 20;
    System.out.print(listed ? file + ": " + sentences + " " + Arrays.toString(now) + "\n" : "");
    return now;
  }

  private static long found(Pattern pattern, String text, String what) {
    List<String> all = pattern.matcher(text).results().map(one -> one.group()).toList();
    all.forEach(one -> System.out.print(listed ? what + ": " + one + ": " + text + "\n" : ""));
    return all.size();
  }
}
