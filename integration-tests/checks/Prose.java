import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Holds pages, first sentences of Javadoc and messages to plain English, by {@code Prose.java
 * check} in the root. prose.txt has a budget for each text that is not plain yet, and {@code check}
 * fails if a text is over or far under it. {@code lower} lowers the budgets, {@code list} prints
 * findings; code and generated parts are out.
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

  /** Openings of a type's Javadoc that name neither what it is nor what it does. */
  private static final Pattern OPENING =
      Pattern.compile(
          "^# (What|Who|Whose|Whom|How|Where|Whether|Which|When|Why|That|If|As|By|Of|Has|Had|Is|Are"
              + "|Was|Says|The same|All that|Everything|Those|One that|Something)\\b.*");

  private static final Pattern JAVADOC =
      Pattern.compile(
          "(?s)/\\*\\*(.*?)\\*/(?:\\s*@[\\w.]+(?:\\([^)]*\\))?)*"
              + "((?:\\s+(?:public|protected|private|static|final|abstract|sealed|non-sealed))*"
              + "\\s+(?:class|interface|enum|record|@interface)\\s)?");

  /** A page that does not say in its first words for whom it is; decision records have a form. */
  private static final Pattern NO_READER =
      Pattern.compile("\\A#[^\n]*\n++(?!(This page is )?[Ff]or )[^\n]*");

  private static final String TAG = "(?s)\\{@\\w+\\s+([^}]*)}";

  /** Between two literals of one message. */
  private static final String GAP = "\"\\s*\\+\\s*(?:[^\";{}]{0,120}?\\+\\s*)?\"";

  private static final Pattern MESSAGE =
      Pattern.compile(
          "\"([A-Za-z'][^\"<>{}|=*/\\\\]*(?: [^\"<>{}|=*\\\\ ]+){4}[^\"<>{}|*\\\\]*)\"");
  private static final List<String> MODULES = List.of("native", "shuffle", "plugin");
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
    for (var entry : texts().entrySet()) {
      String page = entry.getKey();
      double[] standard = new double[NAMES.size()], now = read(page, entry.getValue(), standard);
      double[] budget = budgets.remove(page), max = budget == null ? standard : budget;
      StringBuilder line = new StringBuilder(page);
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

  /** Returns what is checked, by name: pages, and of each module Javadoc and messages. */
  private static TreeMap<String, String> texts() throws Exception {
    var texts = new TreeMap<String, String>();
    Stream<Path> pages = Stream.concat(Files.list(Path.of("")), Files.walk(Path.of("docs")));
    for (Path page : pages.filter(f -> f.toString().endsWith(".md")).toList()) {
      texts.put(page.toString(), Files.readString(page));
    }
    for (String module : MODULES) {
      StringBuilder javadoc = new StringBuilder(), messages = new StringBuilder();
      Stream<Path> sources = Files.walk(Path.of(module, "src/main/java"));
      for (Path source : sources.filter(f -> f.toString().endsWith(".java")).sorted().toList()) {
        String code = Files.readString(source);
        for (MatchResult one : JAVADOC.matcher(code).results().toList()) {
          String first = one.group(1).replaceAll("\\s*\\n\\s*\\* ?", " ").replaceAll(TAG, "`$1`");
          first = first.split("<p>|<ul>|<pre>| @(?=param|return|throws)")[0].trim();
          first = first.split(SENTENCE)[0] + "\n\n";
          javadoc.append(one.group(2) == null ? "" : "# " + first).append(first);
        }
        code = code.replaceAll("zerohop\\.[\\w.]+", "X"); // Names of metrics and keys stay.
        code = code.replaceAll("(?s)/\\*.*?\\*/|//[^\n]*", "").replaceAll(GAP, " X ");
        for (MatchResult one : MESSAGE.matcher(code).results().toList()) {
          messages.append(one.group(1) + "\n\n");
        }
      }
      texts.put(module + ":javadoc", javadoc.toString());
      texts.put(module + ":messages", messages.toString());
    }
    return texts;
  }

  /** Returns the text's numbers, and writes those that a text of its length may have. */
  private static double[] read(String file, String raw, double[] standard) {
    String text = NOT_PROSE.matcher(raw).replaceAll("\n\n");
    Pattern heading = file.endsWith(":javadoc") ? OPENING : HEADING;
    text = text.replaceAll("\\]\\([^)]*\\)", "]").replaceAll("`[^`]+`", "X");
    double[] now = new double[NAMES.size()];
    double sentences = 0;
    if (file.matches("docs/.*\\.md") && !file.matches(".*/decisions/\\d.*")) {
      now[3] += found(NO_READER, raw, "no reader named");
    }
    for (String line : text.replaceAll("\n(?=\\S)(?![-*|#>]|\\d+\\.)", " ").split("\n")) {
      now[2] += found(WORDS, line, "phrase");
      now[3] += found(heading, line, "heading");
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
    standard[0] = file.contains(":") ? 0 : sentences / 20;
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
