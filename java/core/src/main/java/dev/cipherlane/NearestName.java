package dev.cipherlane;

import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;

/** Finds the known name that someone who mistyped most likely meant. */
final class NearestName {
  private NearestName() {}

  static String of(String mistyped, Collection<String> known) {
    return Collections.min(known, Comparator.comparingInt(name -> distance(mistyped, name)));
  }

  /** Levenshtein's distance, row by row. */
  private static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }
}
