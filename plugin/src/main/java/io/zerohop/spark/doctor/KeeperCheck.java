package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.keeper.DaemonLink;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** Checks whether an application of these keys would have a keeper here, and who starts it. */
record KeeperCheck(Config conf) implements Check {
  private static final Duration LIMIT = Duration.ofSeconds(3);

  @Override
  public void run(final Notes notes) {
    notes.add(look());
  }

  Finding look() {
    if (!conf.paths().contains(io.zerohop.shuffle.block.BlockPath.PEER)) {
      return Finding.warn(
          Item.KEEPER,
          "there is no keeper, since spark.zerohop.paths lacks peer",
          "add peer, or set spark.zerohop.keeper=false");
    }
    final Path set = conf.keeper().daemon();
    final Path folder = DaemonLink.folder(set);
    if (set == null && !Files.exists(folder)) {
      return Finding.ok(
          Item.KEEPER, "the first executor starts the keeper, as there is no daemon at " + folder);
    }
    try {
      return ofDaemon(folder, DaemonLink.ask(folder, null, LIMIT));
    } catch (final ZerohopException e) {
      return Finding.warn(
          Item.KEEPER,
          Message.of("the first executor starts the keeper, as the daemon does not")
              .at(folder.toString())
              .because(e)
              .orRemedy("run java -jar zerohop-spark.jar keeper (docs/keeper.md)"));
    }
  }

  private static Finding ofDaemon(final Path folder, final DaemonLink.Answer answer) {
    final String found =
        "the daemon at "
            + folder
            + (answer.release().isEmpty() ? "" : ", release " + answer.release() + ",")
            + " has "
            + answer.keepers()
            + " of "
            + answer.maxKeepers()
            + " keepers, and "
            + answer.left()
            + " of "
            + answer.bytes()
            + " bytes left";
    return answer.keepers() < answer.maxKeepers() && answer.left() > 0
        ? Finding.ok(Item.KEEPER, found)
        : Finding.warn(
            Item.KEEPER,
            found + ": it starts none now",
            "raise --size or --keepers of the daemon, or end an application");
  }
}
